import type { ContainerPort } from '../../kinds/index.ts';
import { initContainersOf, isSidecar, type Pod } from '../../pods/index.ts';

const everywhere = '0.0.0.0';

/** Whether a port of the machine that the pod wants is held by one of the others. */
export function portsTaken(pod: Pod, others: readonly Pod[]): boolean {
  const wanted = hostPorts(pod);
  if (wanted.length === 0) return false;
  const held = others.flatMap(hostPorts);
  return wanted.some((one) => held.some((other) => isSamePort(one, other)));
}

/** Of those that run as long as the pod does. */
function hostPorts(pod: Pod): readonly ContainerPort[] {
  return [...initContainersOf(pod).filter(isSidecar), ...pod.spec.containers]
    .flatMap(({ ports = [] }) => ports)
    .filter(({ hostPort = 0 }) => hostPort > 0);
}

function isSamePort(one: ContainerPort, other: ContainerPort): boolean {
  const addresses = [one, other].map(({ hostIP }) =>
    hostIP === undefined || hostIP === '' ? everywhere : hostIP,
  );
  const meet = addresses[0] === addresses[1] || addresses.includes(everywhere);
  return meet && one.hostPort === other.hostPort && (one.protocol ?? 'TCP') === (other.protocol ?? 'TCP');
}
