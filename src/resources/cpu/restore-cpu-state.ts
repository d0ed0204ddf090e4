import type { RuntimePlacement } from '../cgroups/runtime-placement.ts';
import { type Claim, type Restored, restoreShares } from '../exclusive/restore-shares.ts';
import { decodeCpuCheckpoint } from './cpu-checkpoint.ts';
import type { CpuSet } from './cpu-set.ts';
import { type CpuState, withAssignment } from './cpu-state.ts';
import type { StaticCpuPolicy } from './static-cpu-policy.ts';

export async function restoreCpuState(
  text: string | undefined,
  policy: StaticCpuPolicy,
  fromRuntime: () => Promise<readonly RuntimePlacement[]>,
): Promise<Restored<CpuState>> {
  const how = {
    policyName: 'static',
    initialState: policy.initialState,
    decode: decodeCpuCheckpoint,
    isBegun: ({ defaultCpuSet }: CpuState) => defaultCpuSet.size > 0,
    problemOf: (state: CpuState) => policy.problemOf(state),
    seenIn: (placement: RuntimePlacement) => (looksPinned(placement) ? placement.cpus : undefined),
    grant: (state: CpuState, claim: Claim<CpuSet>) => granted(policy, state, claim),
  };
  return await restoreShares(text, how, fromRuntime);
}

/** Nothing belongs to two pods. */
function granted(
  policy: StaticCpuPolicy,
  state: CpuState,
  { uid, container, share }: Claim<CpuSet>,
): CpuState {
  const own = new Set([...(state.assignments.get(uid)?.values() ?? [])].flatMap((set) => [...set]));
  const free = policy.available(state).union(own);
  return share.size > 0 && share.isSubsetOf(free) ? withAssignment(state, uid, container, share) : state;
}

/** Just as much time as it has processors, and no quota: so do only containers with processors of their own. */
function looksPinned({ cpus, cpuShares, cpuQuotaUs, cpuPeriodUs }: RuntimePlacement): boolean {
  const isUnbound = cpuQuotaUs <= 0 || cpuQuotaUs === cpus.size * cpuPeriodUs;
  return cpus.size > 0 && cpuShares === cpus.size * 1_024 && isUnbound;
}
