/** How amounts of CPU become numbers of the kernel, and back. Cores are counted in thousandths. */

const fewestShares = 2n;
const mostShares = 262_144n;
const shortestQuotaUs = 1_000n;

/** The weight against other cgroups: 1024 a core. */
export function cpuShares(milliCpu: bigint): bigint {
  const shares = (milliCpu * 1024n) / 1000n;
  if (shares < fewestShares) return fewestShares;
  return shares > mostShares ? mostShares : shares;
}

/** Microseconds of each period; 0 for no limit. */
export function cpuQuotaUs(milliCpu: bigint, periodUs: bigint): bigint {
  if (milliCpu === 0n) return 0n;
  const quota = (milliCpu * periodUs) / 1000n;
  return quota < shortestQuotaUs ? shortestQuotaUs : quota;
}

/** What the weight stands for; at most a thousandth less than it was made from. */
export function sharesToMilliCpu(shares: number): number {
  return shares < fewestShares ? 0 : Math.ceil((shares * 1000) / 1024);
}

/** Zero for no limit, which stands as -1 in the file. */
export function quotaUsToMilliCpu(quotaUs: number, periodUs: number): number {
  return quotaUs === -1 ? 0 : Math.floor((quotaUs * 1000) / periodUs);
}
