/** Conversions between cgroup v1 and v2. How resource amounts become these values is in `pods`. */

export const minShares = 2;
const maxShares = 262_144;

/** For cgroups that kubeling writes. Runtimes may use another curve for containers. */
export function sharesToWeight(shares: number): number {
  return shares >= maxShares ? 10_000 : 1 + Math.floor(((shares - 2) * 9999) / 262_142);
}

export const defaultPeriodUs = 100_000;
const secondUs = 1_000_000;
const percentUs = 10_000;

/**
 * The CPU time per second that a quota and a period result in, as systemd computes it: in whole
 * percents of a CPU, rounded up so that child cgroups still get what they were promised.
 */
export function perSecondUs(quotaUs: number, periodUs: number): number {
  return Math.ceil(Math.floor((quotaUs * secondUs) / periodUs) / percentUs) * percentUs;
}

/** The quota that systemd would write; it would overwrite any other value at its next update. */
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
