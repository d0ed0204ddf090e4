import { isIPv4, isIPv6 } from 'node:net';
import type { PodStatus } from '../kinds/index.ts';
import type { ObservedPod, Pod } from '../pods/index.ts';

type Addresses = Pick<PodStatus, 'hostIP' | 'hostIPs' | 'podIP' | 'podIPs'>;

/** The addresses of machine and pod: at most one of each family, the machine's preferred family first. */
export function addresses(
  pod: Pod,
  observed: ObservedPod,
  { nodeIps, previous }: { readonly nodeIps: readonly string[]; readonly previous: PodStatus },
): Addresses {
  const prefersV6 = isIPv6(nodeIps[0] ?? '');
  const host = onePerFamily(nodeIps, prefersV6);
  const before = (previous.podIPs ?? []).map(({ ip }) => ip);
  const own =
    pod.spec.hostNetwork === true ? hostNetworkIps(before, host) : podIps(observed, before, prefersV6);
  return { ...named('host', host), ...named('pod', own) };
}

/** An address outlives its sandbox: whoever looks at a pod that has ended still sees where it was. */
function podIps(observed: ObservedPod, before: readonly string[], prefersV6: boolean): readonly string[] {
  const isServed = observed.sandboxes.some(({ state }) => state === 'ready');
  return observed.ips.length === 0 && !isServed ? before : onePerFamily(observed.ips, prefersV6);
}

/** Fixed once set; only a second family may be added. */
function hostNetworkIps(before: readonly string[], host: readonly string[]): readonly string[] {
  const [first, second] = before;
  if (first === undefined) return host;
  const added = second ?? host.find((ip) => isIPv4(ip) !== isIPv4(first));
  return added === undefined ? [first] : [first, added];
}

function onePerFamily(ips: readonly string[], prefersV6: boolean): readonly string[] {
  const [v4, v6] = [ips.find((ip) => isIPv4(ip)), ips.find((ip) => isIPv6(ip))];
  return (prefersV6 ? [v6, v4] : [v4, v6]).filter((ip) => ip !== undefined);
}

function named(whose: 'host' | 'pod', ips: readonly string[]): Addresses {
  if (ips.length === 0) return {};
  return { [`${whose}IP`]: ips[0], [`${whose}IPs`]: ips.map((ip) => ({ ip })) };
}
