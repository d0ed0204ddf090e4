import { isIPv4 } from 'node:net';
import type { Node } from '../kinds/index.ts';

/** The addresses pods on the host's network have: internal ones before external ones, one of each family at most. */
export function hostIps(node: Node): readonly string[] {
  const addresses = node.status?.addresses ?? [];
  const ips = ['InternalIP', 'ExternalIP'].flatMap((wanted) =>
    addresses.filter(({ type }) => type === wanted).map(({ address }) => address),
  );
  const [first] = ips;
  if (first === undefined) return [];
  const second = ips.find((ip) => isIPv4(ip) !== isIPv4(first));
  return second === undefined ? [first] : [first, second];
}
