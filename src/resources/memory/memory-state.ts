import type { PodUid } from '../../pods/index.ts';

/** The amounts of one memory type on one NUMA node, in bytes. */
export interface MemoryTable {
  readonly total: number;
  readonly systemReserved: number;
  readonly allocatable: number;
  readonly reserved: number;
  readonly free: number;
}

export interface NumaMemory {
  readonly numberOfAssignments: number;
  /** The memory by resource name, such as memory or hugepages-2Mi. */
  readonly memoryMap: ReadonlyMap<string, MemoryTable>;
  /**
   * The NUMA nodes of the group in which this node allocates memory, including this node itself.
   */
  readonly cells: readonly number[];
}

export type MachineMemory = ReadonlyMap<number, NumaMemory>;

/** Memory of one type that is assigned to a container. */
export interface MemoryBlock {
  readonly numaAffinity: readonly number[];
  readonly type: string;
  readonly size: number;
}

export interface MemoryState {
  readonly machine: MachineMemory;
  readonly assignments: ReadonlyMap<PodUid, ReadonlyMap<string, readonly MemoryBlock[]>>;
}

export function blocksOf(
  { assignments }: MemoryState,
  uid: PodUid,
  container: string,
): readonly MemoryBlock[] | undefined {
  return assignments.get(uid)?.get(container);
}

export function withBlocks(
  { machine, assignments }: MemoryState,
  uid: PodUid,
  container: string,
  blocks: readonly MemoryBlock[],
): MemoryState {
  const own = new Map(assignments.get(uid)).set(container, blocks);
  return { machine, assignments: new Map(assignments).set(uid, own) };
}

/** Returns the state without the memory of the container. */
export function withoutBlocks(state: MemoryState, uid: PodUid, container: string): MemoryState {
  const own = new Map(state.assignments.get(uid));
  const machine = (own.get(container) ?? []).reduce(released, state.machine);
  own.delete(container);
  const assignments = new Map(state.assignments);
  if (own.size === 0) assignments.delete(uid);
  else assignments.set(uid, own);
  return { machine, assignments };
}

/**
 * Counts the assignment on each NUMA node of the memory block, and reserves the memory of the block
 * on these nodes in order: on each node as much as is free.
 */
export function reserve(machine: MachineMemory, block: MemoryBlock, size = block.size): MachineMemory {
  let left = size;
  return changed(machine, block, (node) => {
    const part = Math.min(left, node.memoryMap.get(block.type)?.free ?? 0);
    left -= part;
    return {
      ...moved(node, block.type, part),
      numberOfAssignments: node.numberOfAssignments + 1,
      cells: block.numaAffinity,
    };
  });
}

function released(machine: MachineMemory, block: MemoryBlock): MachineMemory {
  let left = block.size;
  return changed(machine, block, (node, id) => {
    const part = Math.min(left, node.memoryMap.get(block.type)?.reserved ?? 0);
    left -= part;
    const numberOfAssignments = node.numberOfAssignments - 1;
    const cells = numberOfAssignments === 0 ? [id] : node.cells;
    return { ...moved(node, block.type, -part), numberOfAssignments, cells };
  });
}

function changed(
  machine: MachineMemory,
  { numaAffinity }: MemoryBlock,
  change: (node: NumaMemory, id: number) => NumaMemory,
): MachineMemory {
  const after = new Map(machine);
  for (const id of numaAffinity) {
    const node = after.get(id);
    if (node !== undefined) after.set(id, change(node, id));
  }
  return after;
}

/** Moves memory of one NUMA node from free to reserved. */
function moved(node: NumaMemory, type: string, size: number): NumaMemory {
  const table = node.memoryMap.get(type);
  if (table === undefined || size === 0) return node;
  const { reserved, free } = table;
  const memoryMap = new Map(node.memoryMap).set(type, {
    ...table,
    reserved: reserved + size,
    free: free - size,
  });
  return { ...node, memoryMap };
}
