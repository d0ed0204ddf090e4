import type { PodUid } from '../../pods/index.ts';
import { podUid } from '../../pods/index.ts';
import type { RuntimePlacement } from '../cgroups/cgroup-values.ts';
import { type Assignment, type Restored, restoreState } from '../exclusive/state-checkpoint.ts';
import { type GoField, goChecksum, goMap, jsonObject, sortedByKey } from '../go-text.ts';
import { type CpuSet, formatCpuSet, noCpus, parseCpuSet } from './cpu-set.ts';
import type { StaticCpuPolicy } from './static-cpu-policy.ts';

/** The exclusive CPUs of each container, and the shared pool. */
export interface CpuState {
  readonly defaultCpuSet: CpuSet;
  readonly assignments: ReadonlyMap<PodUid, ReadonlyMap<string, CpuSet>>;
}

export function assignedTo({ assignments }: CpuState, uid: PodUid, container: string): CpuSet | undefined {
  return assignments.get(uid)?.get(container);
}

/** Returns all CPUs that are assigned exclusively. */
export function exclusiveCpus({ assignments }: CpuState): CpuSet {
  return new Set([...assignments.values()].flatMap((own) => [...own.values()].flatMap((cpus) => [...cpus])));
}

export function withAssignment(state: CpuState, uid: PodUid, container: string, cpus: CpuSet): CpuState {
  const own = new Map(state.assignments.get(uid)).set(container, cpus);
  return {
    defaultCpuSet: state.defaultCpuSet.difference(cpus),
    assignments: new Map(state.assignments).set(uid, own),
  };
}

/** Returns to the shared pool only the CPUs that no other container of the pod uses. */
export function withoutAssignment(state: CpuState, uid: PodUid, container: string): CpuState {
  const own = new Map(state.assignments.get(uid));
  const released = own.get(container) ?? noCpus;
  own.delete(container);
  const kept = new Set([...own.values()].flatMap((cpus) => [...cpus]));
  const assignments = new Map(state.assignments);
  if (own.size === 0) assignments.delete(uid);
  else assignments.set(uid, own);
  return { defaultCpuSet: state.defaultCpuSet.union(released.difference(kept)), assignments };
}

/**
 * The checkpoint file of the CPU manager in the root directory; the Go kubelet uses the same file.
 */
export const cpuStateFile = 'cpu_manager_state';

type Entries = ReadonlyMap<string, ReadonlyMap<string, string>>;

interface Checkpoint {
  readonly policyName: string;
  readonly defaultCpuSet: string;
  readonly entries: Entries;
}

export interface CpuCheckpoint {
  readonly policyName: string;
  readonly state: CpuState;
}

/**
 * The Go type names of the checkpoint: different kubelet versions include different names in the
 * checksum.
 */
const typeNames = ['CPUManagerCheckpoint', 'CPUManagerCheckpointV2'];

export function encodeCpuCheckpoint({ policyName, state }: CpuCheckpoint): string {
  const entries = sortedByKey(
    [...state.assignments].map(([uid, own]) => [
      uid,
      sortedByKey([...own].map(([name, cpus]) => [name, formatCpuSet(cpus)])),
    ]),
  );
  const checkpoint = { policyName, defaultCpuSet: formatCpuSet(state.defaultCpuSet), entries };
  const written = Object.fromEntries([...entries].map(([uid, own]) => [uid, Object.fromEntries(own)]));
  return JSON.stringify({
    policyName,
    defaultCpuSet: checkpoint.defaultCpuSet,
    ...(entries.size === 0 ? {} : { entries: written }),
    checksum: checksumOf(checkpoint, typeNames[0] ?? ''),
  });
}

/** Decodes the checkpoint; throws an error that describes the damage. */
export function decodeCpuCheckpoint(text: string): CpuCheckpoint {
  const json = jsonObject(JSON.parse(text), 'it');
  const { policyName, defaultCpuSet, checksum } = json;
  if (typeof policyName !== 'string' || typeof defaultCpuSet !== 'string' || typeof checksum !== 'number')
    throw new Error('the field policyName, defaultCpuSet or checksum is missing');
  if (
    json['podEntries'] !== undefined &&
    Object.keys(jsonObject(json['podEntries'], 'podEntries')).length > 0
  )
    throw new Error('the checkpoint has assignments of whole pods, which are not supported');
  const checkpoint = { policyName, defaultCpuSet, entries: readEntries(json['entries'] ?? {}) };
  // Files of old kubelets have no checksum.
  if (checksum !== 0 && !checksumsOf(checkpoint).includes(checksum))
    throw new Error('the checksum does not match the content of the checkpoint');
  return { policyName, state: stateOf(checkpoint) };
}

function stateOf({ defaultCpuSet, entries }: Checkpoint): CpuState {
  return {
    defaultCpuSet: parseCpuSet(defaultCpuSet),
    assignments: new Map(
      [...entries].map(([uid, own]) => [
        podUid(uid),
        new Map([...own].map(([name, cpus]) => [name, parseCpuSet(cpus)])),
      ]),
    ),
  };
}

function checksumsOf(checkpoint: Checkpoint): readonly number[] {
  return [
    ...typeNames.map((name) => checksumOf(checkpoint, name)),
    checksumOf(checkpoint, 'CPUManagerCheckpoint', [['PodEntries', 'state.PodCPUAssignments', 'map[]']]),
  ];
}

function checksumOf(
  { policyName, defaultCpuSet, entries }: Checkpoint,
  typeName: string,
  more: readonly GoField[] = [],
): number {
  return goChecksum(`state.${typeName}`, [
    ['PolicyName', 'string', policyName],
    ['DefaultCPUSet', 'string', defaultCpuSet],
    ['Entries', 'map[string]map[string]string', goMap(entries, (own) => goMap(own, (cpus) => cpus))],
    ...more,
    ['Checksum', 'checksum.Checksum', '0'],
  ]);
}

function readEntries(value: unknown): Entries {
  return new Map(
    Object.entries(jsonObject(value, 'entries')).map(([uid, own]) => [
      uid,
      new Map(Object.entries(jsonObject(own, 'an entry')).map(([name, cpus]) => [name, `${cpus}`])),
    ]),
  );
}

export async function restoreCpuState(
  text: string | undefined,
  policy: StaticCpuPolicy,
  fromRuntime: () => Promise<readonly RuntimePlacement[]>,
): Promise<Restored<CpuState>> {
  const how = {
    policyName: 'static',
    initialState: policy.initialState,
    decode: decodeCpuCheckpoint,
    isInitialized: ({ defaultCpuSet }: CpuState) => defaultCpuSet.size > 0,
    problemOf: (state: CpuState) => policy.problemOf(state),
    shareOf: (placement: RuntimePlacement) => (looksPinned(placement) ? placement.cpus : undefined),
    assign: (state: CpuState, claim: Assignment<CpuSet>) => granted(policy, state, claim),
  };
  return await restoreState(text, how, fromRuntime);
}

/** Each CPU is restored for at most one pod. */
function granted(
  policy: StaticCpuPolicy,
  state: CpuState,
  { uid, container, share }: Assignment<CpuSet>,
): CpuState {
  const own = new Set([...(state.assignments.get(uid)?.values() ?? [])].flatMap((set) => [...set]));
  const free = policy.available(state).union(own);
  return share.size > 0 && share.isSubsetOf(free) ? withAssignment(state, uid, container, share) : state;
}

/**
 * Whether the container seems to have exclusive CPUs: only such containers have CPU shares for
 * exactly the number of their CPUs, and no lower quota.
 */
function looksPinned({ cpus, cpuShares, cpuQuotaUs, cpuPeriodUs }: RuntimePlacement): boolean {
  const isUnbound = cpuQuotaUs <= 0 || cpuQuotaUs === cpus.size * cpuPeriodUs;
  return cpus.size > 0 && cpuShares === cpus.size * 1_024 && isUnbound;
}
