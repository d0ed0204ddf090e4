const number = /^[1-9][0-9]*$/;

/**
 * Whether one version of the API comes before the other. Versions that are no whole numbers have no order: then the
 * answer is no.
 */
export function isOlderVersion(one: string, other: string): boolean {
  if (!number.test(one) || !number.test(other)) return false;
  return one.length === other.length ? one < other : one.length < other.length;
}
