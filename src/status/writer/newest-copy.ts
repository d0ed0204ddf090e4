import type { Pod } from '../../pods/index.ts';

/**
 * The newer of two copies of one API object: what a watch brought, and what a call answered. A watch lags behind calls,
 * and what is compared with an old copy may look unchanged. Versions that are no numbers cannot be compared; then
 * the watch is believed, which is always right in the end.
 */
export function newestCopy(watched: Pod, answered: Pod | undefined): Pod {
  if (answered === undefined || answered.metadata.uid !== watched.metadata.uid) return watched;
  const [seen, told] = [versionOf(watched), versionOf(answered)];
  return seen !== undefined && told !== undefined && told > seen ? answered : watched;
}

function versionOf({ metadata: { resourceVersion } }: Pod): bigint | undefined {
  return resourceVersion !== undefined && /^\d{1,30}$/.test(resourceVersion)
    ? BigInt(resourceVersion)
    : undefined;
}

export function isSameCopy({ metadata: one }: Pod, { metadata: other }: Pod): boolean {
  return one.uid === other.uid && one.resourceVersion === other.resourceVersion;
}
