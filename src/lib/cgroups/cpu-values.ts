/** Between the two versions of cgroups. How amounts become values, and back, is in `pods`. */

export const minShares = 2;
const maxShares = 262_144;

/** Of the cgroups we write ourselves. What runtimes write for containers may follow another curve. */
export function sharesToWeight(shares: number): number {
  return shares >= maxShares ? 10_000 : 1 + Math.floor(((shares - 2) * 9999) / 262_142);
}

export const defaultPeriodUs = 100_000;
const secondUs = 1_000_000;
const percentUs = 10_000;

/**
 * The time of processors in each second that a quota of each period comes to, as systemd counts it: by whole percents of a
 * processor, rounded up so that those below can still have what they were promised.
 */
export function perSecondUs(quotaUs: number, periodUs: number): number {
  return Math.ceil(Math.floor((quotaUs * secondUs) / periodUs) / percentUs) * percentUs;
}

/** The quota that systemd would write for it: another one would be changed whenever it looks. */
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
