import { LinuxContainerResources } from '../../src/cri/index.ts';

/**
 * Merges an update into the resources of a container: fields that the update omits stay unchanged,
 * and a memory limit without a swap limit applies to both.
 */
export function mergeResources(
  before: LinuxContainerResources | undefined,
  update: LinuxContainerResources | undefined,
): LinuxContainerResources {
  const old = before ?? LinuxContainerResources.create({});
  if (update === undefined) return old;
  const memory = update.memoryLimitInBytes;
  const swap = update.memorySwapLimitInBytes || memory;
  return {
    cpuPeriod: update.cpuPeriod || old.cpuPeriod,
    cpuQuota: update.cpuQuota || old.cpuQuota,
    cpuShares: update.cpuShares || old.cpuShares,
    memoryLimitInBytes: memory || old.memoryLimitInBytes,
    memorySwapLimitInBytes: swap || old.memorySwapLimitInBytes,
    // The OOM score can only be set when the container is created.
    oomScoreAdj: before === undefined ? update.oomScoreAdj : old.oomScoreAdj,
    cpusetCpus: update.cpusetCpus || old.cpusetCpus,
    cpusetMems: update.cpusetMems || old.cpusetMems,
    hugepageLimits: [...old.hugepageLimits, ...update.hugepageLimits],
    unified: { ...old.unified, ...update.unified },
  };
}
