/** Between the two versions of cgroups. How amounts become values, and back, is in `pods`. */

export const minShares = 2;
const maxShares = 262_144;

/** Of the cgroups we write ourselves. What runtimes write for containers may follow another curve. */
export function sharesToWeight(shares: number): number {
  return shares >= maxShares ? 10_000 : 1 + Math.floor(((shares - 2) * 9999) / 262_142);
}

export function weightToShares(weight: number): number {
  return Math.floor(((weight - 1) * 262_142) / 9999) + 2;
}
