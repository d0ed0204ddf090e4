import type { Container } from '../../kinds/index.ts';
import { KubelingError, quantityValue } from '../../lib/index.ts';
import {
  hasPodLevelResources,
  initContainersOf,
  isHugePages,
  isSidecar,
  type Pod,
  qosClass,
  readResources,
} from '../../pods/index.ts';
import type { TopologyHint, TopologyHints } from '../topology/hint-provider.ts';
import { numaChoices } from '../topology/hint-provider.ts';
import {
  blocksOf,
  type MachineMemory,
  type MemoryBlock,
  type MemoryState,
  type NumaMemory,
  reserve,
  withBlocks,
} from './memory-state.ts';

/** Amounts of memory in bytes by resource name. */
type Amounts = ReadonlyMap<string, number>;

interface Choice {
  readonly numaNodes: readonly number[];
  readonly preferred: boolean;
}

/**
 * The static policy of the memory manager: Guaranteed pods get memory from the fewest possible NUMA
 * nodes. Pure.
 */
export class StaticMemoryPolicy {
  readonly #initial: MachineMemory;

  constructor(initial: MachineMemory) {
    this.#initial = initial;
  }

  get initialState(): MemoryState {
    return { machine: this.#initial, assignments: new Map() };
  }

  /**
   * Returns why restored assignments do not match this machine and these settings; undefined if
   * they match.
   */
  problemOf(state: MemoryState): string | undefined {
    let expected = this.#initial;
    for (const [uid, own] of state.assignments) {
      for (const [name, blocks] of own) {
        for (const block of blocks) {
          const where = `(pod: ${uid}, container: ${name})`;
          const nodes = block.numaAffinity.map((id) => expected.get(id));
          if (nodes.includes(undefined))
            return `${where} the memory assignment uses the NUMA that does not exist`;
          if (nodes.some((node) => node?.memoryMap.has(block.type) !== true))
            return `${where} the memory assignment uses memory resource that does not exist`;
          expected = reserve(expected, block);
        }
      }
    }
    return isSameMachine(state.machine, expected)
      ? undefined
      : 'the expected machine state is different from the real one';
  }

  /**
   * Assigns memory to the container. Returns the same state if the container needs no memory or
   * already has it. Throws ALLOCATION_FAILED.
   */
  allocate(state: MemoryState, pod: Pod, container: Container, affinity: TopologyHint): MemoryState {
    const { uid } = pod.metadata;
    if (!isPinned(pod) || blocksOf(state, uid, container.name) !== undefined) return state;
    if (hasReleasedToLater(state, pod, container)) return state;
    const requested = requestedBy(container);
    const numaAffinity = this.#nodesFor(state, pod, requested, affinity);
    let machine = state.machine;
    const blocks = [...requested].map(([type, size]) => ({ numaAffinity, type, size }));
    for (const block of blocks)
      machine = reserve(
        machine,
        block,
        Math.max(0, block.size - reusable(state, pod, numaAffinity, block.type)),
      );
    const given = withBlocks({ ...state, machine }, uid, container.name, blocks);
    return blocks.reduce((after, block) => withoutReused(after, pod, container, block), given);
  }

  hints(state: MemoryState, pod: Pod, container: Container): TopologyHints | undefined {
    if (!isPinned(pod) || hasReleasedToLater(state, pod, container)) return undefined;
    const requested = requestedBy(container);
    const present = blocksOf(state, pod.metadata.uid, container.name);
    return present === undefined
      ? asHints(this.#choices(state, pod, requested), requested)
      : existingHints(present, requested);
  }

  podHints(state: MemoryState, pod: Pod): TopologyHints | undefined {
    if (!isPinned(pod)) return undefined;
    const requested = requestedByPod(pod);
    if (requested.size === 0) return undefined;
    for (const { name } of [...initContainersOf(pod), ...pod.spec.containers]) {
      const present = blocksOf(state, pod.metadata.uid, name);
      if (present !== undefined) return existingHints(present, requested);
    }
    return asHints(this.#choices(state, pod, requested), requested);
  }

  #nodesFor(state: MemoryState, pod: Pod, requested: Amounts, hint: TopologyHint): readonly number[] {
    const near = hint.numaNodes === undefined ? this.#defaultAffinity(state, pod, requested, hint) : hint;
    const numaNodes = near.numaNodes ?? [];
    const chosen = hasEnough(state.machine, numaNodes, requested)
      ? numaNodes
      : this.#extendedAffinity(state, pod, requested, numaNodes, near.preferred);
    if (mixesGroups(state.machine, chosen)) throw failed('preferred hint violates NUMA node allocation');
    return chosen;
  }

  #defaultAffinity(state: MemoryState, pod: Pod, requested: Amounts, hint: TopologyHint): Choice {
    const best = bestOf(this.#choices(state, pod, requested));
    if (best === undefined)
      throw failed('failed to get the default NUMA affinity, no NUMA nodes with enough memory is available');
    if (!best.preferred && hint.preferred) throw failed('failed to find the default preferred hint');
    return best;
  }

  /**
   * Returns a set of NUMA nodes that includes those of the merged hint and has enough memory for
   * the container. The merged hint may have too few nodes, because it also depends on CPUs and
   * devices.
   */
  #extendedAffinity(
    state: MemoryState,
    pod: Pod,
    requested: Amounts,
    numaNodes: readonly number[],
    preferred: boolean,
  ): readonly number[] {
    const wider = this.#choices(state, pod, requested).filter((choice) =>
      numaNodes.every((id) => choice.numaNodes.includes(id)),
    );
    const best = bestOf(wider);
    if (best === undefined) throw failed('failed to find NUMA nodes to extend the current topology hint');
    if (!best.preferred && preferred) throw failed('failed to find the extended preferred hint');
    return best.numaNodes;
  }

  /** A NUMA node allocates memory either alone or always in the same group of nodes. */
  #choices({ machine, assignments }: MemoryState, pod: Pod, requested: Amounts): readonly Choice[] {
    const ids = [...machine.keys()].toSorted((one, other) => one - other);
    const possible: (readonly number[])[] = [];
    let fewest = ids.length;
    for (const numaNodes of numaChoices(ids)) {
      const nodes = numaNodes.flatMap((id) => machine.get(id) ?? []);
      const sum = (type: string, what: 'free' | 'allocatable') =>
        nodes.reduce((all, { memoryMap }) => all + (memoryMap.get(type)?.[what] ?? 0), 0);
      if ([...requested].some(([type, size]) => sum(type, 'allocatable') < size)) continue;
      fewest = Math.min(fewest, numaNodes.length);
      const isUsedByOthers = numaNodes.length === 1 && nodes.some(({ cells }) => cells.length > 1);
      if (isUsedByOthers || mixesGroups(machine, numaNodes)) continue;
      const state = { machine, assignments };
      const isEnough = ([type, size]: readonly [string, number]) =>
        sum(type, 'free') + reusable(state, pod, numaNodes, type) >= size;
      if ([...requested].every(isEnough)) possible.push(numaNodes);
    }
    return possible.map((numaNodes) => ({ numaNodes, preferred: numaNodes.length === fewest }));
  }
}

/** Returns the memory state of the machine before any assignment. */
export function initialMachineMemory(
  nodes: readonly {
    readonly id: number;
    readonly memoryBytes: number;
    readonly hugePages: readonly { readonly type: string; readonly bytes: number }[];
  }[],
  reservedOn: (id: number, type: string) => number,
): MachineMemory {
  return new Map(
    nodes.map(({ id, memoryBytes, hugePages }) => {
      const inPages = hugePages.reduce((sum, { bytes }) => sum + bytes, 0);
      const table = (type: string, total: number, kept: number) => {
        const systemReserved = reservedOn(id, type);
        const allocatable = Math.max(0, total - systemReserved - kept);
        return [type, { total, systemReserved, allocatable, reserved: 0, free: allocatable }] as const;
      };
      const memoryMap = new Map([
        ...hugePages.map(({ type, bytes }) => table(type, bytes, 0)),
        table('memory', memoryBytes, inPages),
      ]);
      return [id, { numberOfAssignments: 0, memoryMap, cells: [id] }] as const;
    }),
  );
}

export function isPinned(pod: Pod): boolean {
  return qosClass(pod) === 'Guaranteed' && !hasPodLevelResources(pod);
}

function failed(why: string): KubelingError {
  return new KubelingError('ALLOCATION_FAILED', `[memorymanager] ${why}`);
}

function requestedBy(container: Container): Amounts {
  const requests = readResources(container.resources?.requests);
  return new Map(
    [...requests].flatMap(([type, amount]) =>
      type === 'memory' || isHugePages(type) ? [[type, Number(quantityValue(amount))] as const] : [],
    ),
  );
}

/**
 * Returns the maximum memory that the pod needs at one time, for the memory types that its main
 * containers request.
 */
function requestedByPod(pod: Pod): Amounts {
  const sidecars = new Map<string, number>();
  const initializing = new Map<string, number>();
  for (const container of initContainersOf(pod)) {
    for (const [type, size] of requestedBy(container)) {
      const needed = (sidecars.get(type) ?? 0) + size;
      if (isSidecar(container)) sidecars.set(type, needed);
      else initializing.set(type, Math.max(initializing.get(type) ?? 0, needed));
    }
  }
  const running = new Map<string, number>();
  for (const container of pod.spec.containers)
    for (const [type, size] of requestedBy(container)) running.set(type, (running.get(type) ?? 0) + size);
  return new Map(
    [...running].map(([type, size]) => [
      type,
      Math.max(size + (sidecars.get(type) ?? 0), initializing.get(type) ?? 0),
    ]),
  );
}

/**
 * Returns how much memory on exactly these NUMA nodes is assigned to init containers and not reused
 * yet.
 */
function reusable(state: MemoryState, pod: Pod, numaNodes: readonly number[], type: string): number {
  const blocks = initContainersOf(pod)
    .filter((container) => !isSidecar(container))
    .flatMap(({ name }) => blocksOf(state, pod.metadata.uid, name) ?? []);
  return blocks
    .filter((block) => block.type === type && isSameGroup(block.numaAffinity, numaNodes))
    .reduce((sum, { size }) => sum + size, 0);
}

/**
 * Reduces the blocks of init containers by the reused memory, so that the sum of all blocks is the
 * memory of the pod.
 */
function withoutReused(state: MemoryState, pod: Pod, container: Container, block: MemoryBlock): MemoryState {
  const { uid } = pod.metadata;
  let left = block.size;
  let after = state;
  for (const earlier of initContainersOf(pod)) {
    if (earlier.name === container.name) break;
    const blocks = isSidecar(earlier) ? undefined : blocksOf(after, uid, earlier.name);
    if (blocks === undefined) continue;
    const kept = blocks.map((one) => {
      if (one.type !== block.type || !isSameGroup(one.numaAffinity, block.numaAffinity)) return one;
      const part = Math.min(left, one.size);
      left -= part;
      return { ...one, size: one.size - part };
    });
    after = withBlocks(after, uid, earlier.name, kept);
  }
  return after;
}

/**
 * Whether the init container has exited, which is certain if a later container reuses its memory.
 * Without this check, a later sync, for example after a restart, would assign more memory than the
 * pod ever uses.
 */
function hasReleasedToLater(state: MemoryState, pod: Pod, container: Container): boolean {
  const { uid } = pod.metadata;
  const init = initContainersOf(pod);
  const place = init.findIndex(({ name }) => name === container.name);
  if (place < 0 || isSidecar(container) || blocksOf(state, uid, container.name) !== undefined) return false;
  const later = [...init.slice(place + 1), ...pod.spec.containers];
  return later.some(({ name }) => blocksOf(state, uid, name) !== undefined);
}

function asHints(choices: readonly Choice[], requested: Amounts): TopologyHints {
  return new Map(choices.length === 0 ? [] : [...requested.keys()].map((type) => [type, choices] as const));
}

/**
 * Returns the hint for the blocks that the container already has; undefined if they no longer match
 * its request.
 */
function existingHints(blocks: readonly MemoryBlock[], requested: Amounts): TopologyHints | undefined {
  const isRequested =
    blocks.length === requested.size && blocks.every(({ type, size }) => requested.get(type) === size);
  if (!isRequested) return undefined;
  return new Map(
    blocks.map(({ type, numaAffinity }) => [type, [{ numaNodes: numaAffinity, preferred: true }]]),
  );
}

function bestOf(choices: readonly Choice[]): Choice | undefined {
  // Preferred choices are better than others, then choices with fewer NUMA nodes.
  return choices.reduce<Choice | undefined>(
    (best, choice) => (best === undefined || isBetter(choice, best) ? choice : best),
    undefined,
  );
}

function isBetter(one: Choice, other: Choice): boolean {
  if (one.preferred !== other.preferred) return one.preferred;
  const [width, otherWidth] = [one.numaNodes.length, other.numaNodes.length];
  if (width !== otherWidth) return width < otherWidth;
  const last = one.numaNodes.findLastIndex((id, place) => id !== other.numaNodes[place]);
  return last !== -1 && (one.numaNodes[last] ?? 0) < (other.numaNodes[last] ?? 0);
}

function hasEnough(machine: MachineMemory, numaNodes: readonly number[], requested: Amounts): boolean {
  const free = (type: string) =>
    numaNodes.reduce((sum, id) => sum + (machine.get(id)?.memoryMap.get(type)?.free ?? 0), 0);
  return [...requested].every(([type, size]) => free(type) >= size);
}

/** Whether a NUMA node of the set is already used alone or in another group. */
function mixesGroups(machine: MachineMemory, numaNodes: readonly number[]): boolean {
  if (numaNodes.length === 1) return false;
  return numaNodes
    .flatMap((id) => machine.get(id) ?? [])
    .some(
      ({ numberOfAssignments, cells }) =>
        numberOfAssignments > 0 && (cells.length === 1 || !isSameGroup(cells, numaNodes)),
    );
}

function isSameGroup(one: readonly number[], other: readonly number[]): boolean {
  return one.length === other.length && one.every((id) => other.includes(id));
}

/** Whether both states are equal. Within a group of NUMA nodes only the sums must be equal. */
function isSameMachine(one: MachineMemory, other: MachineMemory): boolean {
  const sum = (machine: MachineMemory, { cells }: NumaMemory, type: string, what: 'free' | 'reserved') =>
    cells.reduce((all, id) => all + (machine.get(id)?.memoryMap.get(type)?.[what] ?? 0), 0);
  if (one.size !== other.size) return false;
  return [...one].every(([id, node]) => {
    const twin = other.get(id);
    if (twin === undefined || node.numberOfAssignments !== twin.numberOfAssignments) return false;
    if (!isSameGroup(node.cells, twin.cells) || node.memoryMap.size !== twin.memoryMap.size) return false;
    return [...node.memoryMap].every(([type, table]) => {
      const same = twin.memoryMap.get(type);
      return (
        same !== undefined &&
        table.total === same.total &&
        table.systemReserved === same.systemReserved &&
        table.allocatable === same.allocatable &&
        sum(one, node, type, 'free') === sum(other, node, type, 'free') &&
        sum(one, node, type, 'reserved') === sum(other, node, type, 'reserved')
      );
    });
  });
}
