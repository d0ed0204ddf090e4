import { podUid } from '../../pods/index.ts';
import type { RuntimePlacement } from '../cgroups/cgroup-values.ts';
import { type Assignment, type Restored, restoreState } from '../exclusive/state-checkpoint.ts';
import { type GoField, goChecksum, goList, goMap, goStruct, jsonObject, sortedByKey } from '../go-text.ts';
import type { MemoryBlock, MemoryState, MemoryTable, NumaMemory } from './memory-state.ts';
import { reserve, withBlocks } from './memory-state.ts';
import type { StaticMemoryPolicy } from './static-memory-policy.ts';

/**
 * The checkpoint file of the memory manager in the root directory; the Go kubelet uses the same
 * file.
 */
export const memoryStateFile = 'memory_manager_state';

export interface MemoryCheckpoint {
  readonly policyName: string;
  readonly state: MemoryState;
}

/**
 * The Go type names of the checkpoint: different kubelet versions include different names in the
 * checksum.
 */
const typeNames = ['MemoryManagerCheckpoint', 'MemoryManagerCheckpointV1'];

export function encodeMemoryCheckpoint(checkpoint: MemoryCheckpoint): string {
  const { policyName, state } = checkpoint;
  const machineState = written(state.machine, ({ numberOfAssignments, memoryMap, cells }) => ({
    numberOfAssignments,
    memoryMap: written(memoryMap, ({ total, systemReserved, allocatable, reserved, free }) => ({
      total,
      systemReserved,
      allocatable,
      reserved,
      free,
    })),
    cells,
  }));
  const entries = written(state.assignments, (own) =>
    written(own, (blocks) => blocks.map(({ numaAffinity, type, size }) => ({ numaAffinity, type, size }))),
  );
  return JSON.stringify({
    policyName,
    machineState,
    ...(state.assignments.size === 0 ? {} : { entries }),
    checksum: checksumOf(checkpoint, typeNames[0] ?? ''),
  });
}

/** Decodes the memory checkpoint; throws an error that describes the damage. */
export function decodeMemoryCheckpoint(text: string): MemoryCheckpoint {
  const json = jsonObject(JSON.parse(text), 'it');
  const { policyName, checksum } = json;
  if (typeof policyName !== 'string' || typeof checksum !== 'number')
    throw new Error('the field policyName or checksum is missing');
  if (
    json['podEntries'] !== undefined &&
    Object.keys(jsonObject(json['podEntries'], 'podEntries')).length > 0
  )
    throw new Error('the checkpoint has assignments of whole pods, which are not supported');
  const machine = read(json['machineState'], 'machineState', readNode);
  const assignments = read(json['entries'] ?? {}, 'entries', (own) => read(own, 'an entry', readBlocks));
  const checkpoint: MemoryCheckpoint = {
    policyName,
    state: {
      machine: new Map([...machine].map(([id, node]) => [Number(id), node])),
      assignments: new Map([...assignments].map(([uid, own]) => [podUid(uid), own])),
    },
  };
  // Files of old kubelets have no checksum.
  if (checksum !== 0 && !checksumsOf(checkpoint).includes(checksum))
    throw new Error('the checksum does not match the content of the checkpoint');
  return checkpoint;
}

function checksumsOf(checkpoint: MemoryCheckpoint): readonly number[] {
  return [
    ...typeNames.map((name) => checksumOf(checkpoint, name)),
    checksumOf(checkpoint, 'MemoryManagerCheckpoint', [
      ['PodEntries', 'state.PodMemoryAssignments', 'map[]'],
    ]),
  ];
}

function checksumOf(
  { policyName, state }: MemoryCheckpoint,
  typeName: string,
  more: readonly GoField[] = [],
): number {
  const entries = goMap(state.assignments, (own) => goMap(own, (blocks) => goList(blocks, goBlock)));
  return goChecksum(`state.${typeName}`, [
    ['PolicyName', 'string', policyName],
    ['MachineState', 'state.NUMANodeMap', goMap(state.machine, goNode)],
    ['Entries', 'state.ContainerMemoryAssignments', entries],
    ...more,
    ['Checksum', 'checksum.Checksum', '0'],
  ]);
}

function goNode({ numberOfAssignments, memoryMap, cells }: NumaMemory): string {
  const fields = goStruct([
    ['NumberOfAssignments', 'int', `${numberOfAssignments}`],
    ['MemoryMap', 'map[v1.ResourceName]*state.MemoryTable', goMap(memoryMap, goTable)],
    ['Cells', '[]int', goList(cells)],
  ]);
  return `<*>${fields}`;
}

function goTable({ total, systemReserved, allocatable, reserved, free }: MemoryTable): string {
  const fields = goStruct([
    ['TotalMemSize', 'uint64', `${total}`],
    ['SystemReserved', 'uint64', `${systemReserved}`],
    ['Allocatable', 'uint64', `${allocatable}`],
    ['Reserved', 'uint64', `${reserved}`],
    ['Free', 'uint64', `${free}`],
  ]);
  return `<*>${fields}`;
}

function goBlock({ numaAffinity, type, size }: MemoryBlock): string {
  return goStruct([
    ['NUMAAffinity', '[]int', goList(numaAffinity)],
    ['Type', 'v1.ResourceName', type],
    ['Size', 'uint64', `${size}`],
  ]);
}

function written<K extends string | number, V, W>(
  entries: ReadonlyMap<K, V>,
  of: (value: V) => W,
): Readonly<Record<string, W>> {
  return Object.fromEntries([...sortedByKey(entries)].map(([key, value]) => [`${key}`, of(value)]));
}

function read<W>(value: unknown, what: string, of: (value: unknown) => W): ReadonlyMap<string, W> {
  return new Map(Object.entries(jsonObject(value, what)).map(([key, part]) => [key, of(part)]));
}

function readNode(value: unknown): NumaMemory {
  const { numberOfAssignments, memoryMap, cells } = jsonObject(value, 'the state of a NUMA node');
  return {
    numberOfAssignments: readNumber(numberOfAssignments, 'numberOfAssignments'),
    memoryMap: read(memoryMap, 'memoryMap', readTable),
    cells: readNumbers(cells, 'cells'),
  };
}

function readTable(value: unknown): MemoryTable {
  const table = jsonObject(value, 'a kind of memory');
  const field = (name: keyof MemoryTable) => readNumber(table[name], name);
  return {
    total: field('total'),
    systemReserved: field('systemReserved'),
    allocatable: field('allocatable'),
    reserved: field('reserved'),
    free: field('free'),
  };
}

function readBlocks(value: unknown): readonly MemoryBlock[] {
  if (!Array.isArray(value)) throw new Error('the memory blocks of a container are not a list');
  return value.map((block) => {
    const { numaAffinity, type, size } = jsonObject(block, 'a block');
    if (typeof type !== 'string') throw new Error('a memory block has no type');
    return { numaAffinity: readNumbers(numaAffinity, 'numaAffinity'), type, size: readNumber(size, 'size') };
  });
}

function readNumbers(value: unknown, what: string): readonly number[] {
  if (!Array.isArray(value)) throw new Error(`${what} is not a list`);
  return value.map((number) => readNumber(number, what));
}

function readNumber(value: unknown, what: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0)
    throw new Error(`${what} is not a non-negative integer`);
  return value;
}

type Blocks = readonly MemoryBlock[];

export async function restoreMemoryState(
  text: string | undefined,
  policy: StaticMemoryPolicy,
  fromRuntime: () => Promise<readonly RuntimePlacement[]>,
): Promise<Restored<MemoryState>> {
  const how = {
    policyName: 'Static',
    initialState: policy.initialState,
    decode: decodeMemoryCheckpoint,
    isInitialized: ({ machine }: MemoryState) => machine.size > 0,
    problemOf: (state: MemoryState) => policy.problemOf(state),
    shareOf,
    assign,
  };
  return await restoreState(text, how, fromRuntime);
}

/**
 * Only containers with exclusive memory are restricted to NUMA nodes, so no other container is
 * derived from the runtime.
 */
function shareOf({ mems, memory }: RuntimePlacement): Blocks | undefined {
  const numaAffinity = [...mems].toSorted((one, other) => one - other);
  const blocks = [...memory].flatMap(([type, size]) => (size > 0 ? [{ numaAffinity, type, size }] : []));
  return mems.size === 0 || blocks.length === 0 ? undefined : blocks;
}

function assign(state: MemoryState, { uid, container, share }: Assignment<Blocks>): MemoryState {
  if (!share.every((block) => isThere(state, block))) return state;
  const machine = share.reduce((before, block) => reserve(before, block), state.machine);
  return withBlocks({ machine, assignments: state.assignments }, uid, container, share);
}

function isThere({ machine }: MemoryState, { numaAffinity, type, size }: MemoryBlock): boolean {
  const tables = numaAffinity.map((id) => machine.get(id)?.memoryMap.get(type));
  return !tables.includes(undefined) && tables.reduce((sum, table) => sum + (table?.free ?? 0), 0) >= size;
}
