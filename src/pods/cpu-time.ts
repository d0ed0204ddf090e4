/** How amounts of CPU become numbers of the kernel. Cores are counted in thousandths. */

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
