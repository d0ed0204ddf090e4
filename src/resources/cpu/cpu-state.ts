import type { PodUid } from '../../pods/index.ts';
import { type CpuSet, noCpus } from './cpu-set.ts';

/** Which processors belong to one container alone, and which to all others. */
export interface CpuState {
  readonly defaultCpuSet: CpuSet;
  readonly assignments: ReadonlyMap<PodUid, ReadonlyMap<string, CpuSet>>;
}

export function assignedTo({ assignments }: CpuState, uid: PodUid, container: string): CpuSet | undefined {
  return assignments.get(uid)?.get(container);
}

/** All that belong to one container alone. */
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

/** What other containers of the pod have as well stays with them. */
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
