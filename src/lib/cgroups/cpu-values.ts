/**
 * Conversions between CPU values of cgroup v1 and v2. The package `pods` computes these values from
 * resource amounts.
 */

export const minShares = 2;
const maxShares = 262_144;

/**
 * Converts CPU shares to a CPU weight for cgroups that kubeling writes. Runtimes may convert with
 * another formula for containers.
 */
export function sharesToWeight(shares: number): number {
  return shares >= maxShares ? 10_000 : 1 + Math.floor(((shares - 2) * 9999) / 262_142);
}

export const defaultPeriodUs = 100_000;
const secondUs = 1_000_000;
const percentUs = 10_000;

/**
 * The CPU time per second for a quota and a period, as systemd computes it: in whole percents of a
 * CPU, rounded up so that child cgroups still get their limits.
 */
export function perSecondUs(quotaUs: number, periodUs: number): number {
  return Math.ceil(Math.floor((quotaUs * secondUs) / periodUs) / percentUs) * percentUs;
}

/** The quota as systemd would write it: systemd overwrites any other quota at its next update. */
export function wholePercentQuotaUs(quotaUs: number, periodUs: number): number {
  if (quotaUs <= 0) return quotaUs;
  const exactUs = Math.floor((quotaUs * secondUs) / periodUs);
  return exactUs % percentUs === 0
    ? quotaUs
    : Math.floor((perSecondUs(quotaUs, periodUs) * periodUs) / secondUs);
}

export function weightToShares(weight: number): number {
  return Math.floor(((weight - 1) * 262_142) / 9999) + 2;
}
