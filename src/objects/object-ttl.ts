const annotation = 'node.alpha.kubernetes.io/ttl';
const defaultTtlMs = 60_000;

/** How long an object may be used before it is asked for again. The cluster sets it, in seconds, on its larger nodes. */
export function objectTtlMs(nodeAnnotations: Readonly<Record<string, string>> = {}): number {
  const written = nodeAnnotations[annotation];
  return written !== undefined && /^[+-]?[0-9]+$/.test(written) ? Number(written) * 1_000 : defaultTtlMs;
}
