import { describeError } from '../../lib/index.ts';
import type { RuntimePlacement } from '../runtime-placement.ts';
import { type CpuCheckpoint, decodeCpuCheckpoint } from './cpu-checkpoint.ts';
import { type CpuState, withAssignment } from './cpu-state.ts';
import type { StaticCpuPolicy } from './static-cpu-policy.ts';

export interface RestoredCpus {
  readonly state: CpuState;
  /** Why the checkpoint was not good as it was. */
  readonly mended?: string;
}

/**
 * What an earlier kubelet has assigned. A checkpoint that is none, of another policy or of another machine is no reason
 * not to start: where nothing is assigned it is begun anew, else what the runtime has tells who has which processors.
 */
export async function restoreCpuState(
  text: string | undefined,
  policy: StaticCpuPolicy,
  fromRuntime: () => Promise<readonly RuntimePlacement[]>,
): Promise<RestoredCpus> {
  if (text === undefined) return { state: policy.initialState };
  const read = tryDecode(text);
  const why = 'why' in read ? read.why : problemOf(read, policy);
  const known = 'why' in read ? undefined : read.state.assignments;
  if (why === undefined && 'state' in read)
    return { state: read.state.defaultCpuSet.size === 0 ? policy.initialState : read.state };
  if (known?.size === 0) return { state: policy.initialState, mended: why ?? '' };
  return { state: rebuilt(policy, read, await fromRuntime()), mended: why ?? '' };
}

type Read = CpuCheckpoint | { readonly why: string };

function tryDecode(text: string): Read {
  try {
    return decodeCpuCheckpoint(text);
  } catch (error) {
    return { why: describeError(error) };
  }
}

function problemOf({ policyName, state }: CpuCheckpoint, policy: StaticCpuPolicy): string | undefined {
  if (policyName !== 'static') return `it was written under the policy ${policyName}`;
  const isNew = state.defaultCpuSet.size === 0 && state.assignments.size === 0;
  return isNew ? undefined : policy.problemOf(state);
}

/** Of what was noted, or else is seen, as much as can be true on this machine now: nothing belongs to two pods. */
function rebuilt(policy: StaticCpuPolicy, read: Read, seen: readonly RuntimePlacement[]): CpuState {
  const there = new Set(seen.map(({ uid }) => uid));
  const noted = 'state' in read && read.policyName === 'static' ? [...read.state.assignments] : undefined;
  const claims =
    noted === undefined
      ? seen.filter(looksPinned)
      : noted.flatMap(([uid, own]) => [...own].map(([container, cpus]) => ({ uid, container, cpus })));
  let state = policy.initialState;
  for (const { uid, container, cpus } of claims) {
    const own = new Set([...(state.assignments.get(uid)?.values() ?? [])].flatMap((set) => [...set]));
    const free = policy.available(state).union(own);
    if (there.has(uid) && cpus.size > 0 && cpus.isSubsetOf(free))
      state = withAssignment(state, uid, container, cpus);
  }
  return state;
}

/** Just as much time as it has processors, and no quota: so do only containers with processors of their own. */
function looksPinned({ cpus, cpuShares, cpuQuotaUs, cpuPeriodUs }: RuntimePlacement): boolean {
  const isUnbound = cpuQuotaUs <= 0 || cpuQuotaUs === cpus.size * cpuPeriodUs;
  return cpus.size > 0 && cpuShares === cpus.size * 1_024 && isUnbound;
}
