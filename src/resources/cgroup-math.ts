/** From the values of cgroups back to amounts, and between the two versions. What goes the other way is in `pods`. */

export const minShares = 2;
const maxShares = 262_144;
const sharesPerCpu = 1024;

export function sharesToMilliCpu(shares: number): number {
  return shares < minShares ? 0 : Math.ceil((shares * 1000) / sharesPerCpu);
}

/** Zero for no limit, which stands as -1 in the file. */
export function quotaUsToMilliCpu(quotaUs: number, periodUs: number): number {
  return quotaUs === -1 ? 0 : Math.floor((quotaUs * 1000) / periodUs);
}

/** Of the cgroups we write ourselves. What runtimes write for containers may follow another curve. */
export function sharesToWeight(shares: number): number {
  return shares >= maxShares ? 10_000 : 1 + Math.floor(((shares - 2) * 9999) / 262_142);
}

export function weightToShares(weight: number): number {
  return Math.floor(((weight - 1) * 262_142) / 9999) + 2;
}
