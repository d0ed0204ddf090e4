import type { LinuxContainerResources } from '../../cri/index.ts';
import { hugePageResource, type PodUid } from '../../pods/index.ts';
import type { RuntimePlacement } from '../cgroups/cgroup-values.ts';
import { parseCpuSet } from '../cpu/cpu-set.ts';

/** Returns the CPUs, NUMA nodes and memory of a container, as the CRI reports them. */
export function runtimePlacement(
  { uid, container }: { readonly uid: PodUid; readonly container: string },
  linux: LinuxContainerResources | undefined,
): RuntimePlacement {
  return {
    uid,
    container,
    cpus: parseCpuSet(linux?.cpusetCpus ?? ''),
    cpuShares: Number(linux?.cpuShares ?? 0n),
    cpuQuotaUs: Number(linux?.cpuQuota ?? 0n),
    cpuPeriodUs: Number(linux?.cpuPeriod ?? 0n),
    mems: parseCpuSet(linux?.cpusetMems ?? ''),
    memory: memoryOf(linux),
  };
}

function memoryOf(linux: LinuxContainerResources | undefined): ReadonlyMap<string, number> {
  const pages = (linux?.hugepageLimits ?? []).flatMap(({ pageSize, limit }) =>
    limit > 0n ? [[hugePageResource(pageSize), Number(limit)] as const] : [],
  );
  return new Map([['memory', Number(linux?.memoryLimitInBytes ?? 0n)], ...pages]);
}
