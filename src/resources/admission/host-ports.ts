import type { ContainerPort } from '../../kinds/index.ts';
import { KubelingError } from '../../lib/index.ts';
import { initContainersOf, isSidecar, type Pod } from '../../pods/index.ts';

const everywhere = '0.0.0.0';

/** Whether another pod holds a host port that the pod requests. Linear in the number of ports. */
export function hasHostPortConflict(pod: Pod, others: readonly Pod[]): boolean {
  const requested = hostPorts(pod);
  if (requested.length === 0) return false;
  const held = new Map<string, Set<string>>();
  for (const port of others.flatMap(hostPorts)) {
    const addresses = held.get(keyOf(port)) ?? new Set();
    held.set(keyOf(port), addresses.add(addressOf(port)));
  }
  return requested.some((port) => {
    const addresses = held.get(keyOf(port));
    if (addresses === undefined) return false;
    const address = addressOf(port);
    return address === everywhere || addresses.has(everywhere) || addresses.has(address);
  });
}

/**
 * Returns a host port of the pod on which the node itself listens. The port mapping of CNI would send the node's own traffic, with
 * its credentials, to the pod. A pod in the host network is exempt: nothing is redirected to it.
 */
export function nodePortRequested(pod: Pod, nodePorts: ReadonlySet<number>): number | undefined {
  if (pod.spec.hostNetwork === true) return undefined;
  return hostPorts(pod).find(({ hostPort = 0, protocol }) => protocol !== 'UDP' && nodePorts.has(hostPort))
    ?.hostPort;
}

/** The host ports of the sidecars and main containers of the pod. */
function hostPorts(pod: Pod): readonly ContainerPort[] {
  return [...initContainersOf(pod).filter(isSidecar), ...pod.spec.containers]
    .flatMap(({ ports = [] }) => ports)
    .filter(({ hostPort = 0 }) => hostPort > 0);
}

function keyOf({ hostPort, protocol }: ContainerPort): string {
  return `${protocol ?? 'TCP'} ${hostPort}`;
}

function addressOf({ hostIP }: ContainerPort): string {
  return hostIP === undefined || hostIP === '' ? everywhere : hostIP;
}

/**
 * Returns the URL of a stream of the runtime. Rejects when a pod has its port as host port: the port mapping of CNI would redirect the
 * connection, with all it carries, to that pod.
 */
export function checkStreamUrl(url: string, pods: { getPods(): readonly Pod[] }): string {
  const ports = new Set([Number(URL.parse(url)?.port ?? '')]);
  const owner = pods.getPods().find((pod) => nodePortRequested(pod, ports) !== undefined);
  if (owner === undefined) return url;
  const { namespace, name } = owner.metadata;
  throw new KubelingError(
    'STREAM_REFUSED',
    `Cannot open a stream because a host port of pod ${namespace}/${name} is the streaming port of the container runtime: delete the pod or restart the runtime`,
  );
}
