const annotation = 'node.alpha.kubernetes.io/ttl';
const defaultTtlMs = 60_000;

/** The TTL of cached objects. The cluster sets it, in seconds, on large clusters. */
export function objectTtlMs(nodeAnnotations: Readonly<Record<string, string>> = {}): number {
  const written = nodeAnnotations[annotation];
  return written !== undefined && /^[+-]?[0-9]+$/.test(written) ? Number(written) * 1_000 : defaultTtlMs;
}
