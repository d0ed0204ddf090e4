import { isIPv6 } from 'node:net';
import type { PortMapping, Protocol } from '../../cri/index.ts';
import type { Container, ContainerPort } from '../../kinds/index.ts';
import type { Pod } from '../../pods/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';

/** The ports of all regular containers; those of one container that share a name count once. */
export function portMappings({ spec }: Pod): readonly MessageInit<PortMapping>[] {
  return spec.containers.flatMap(mappingsOf);
}

function mappingsOf({ ports = [] }: Container): MessageInit<PortMapping>[] {
  const byName = new Map<string, ContainerPort>();
  for (const port of ports) {
    const name = keyOf(port);
    if (!byName.has(name)) byName.set(name, port);
  }
  return Array.from(byName.values(), ({ containerPort, hostPort = 0, hostIP = '', protocol = 'TCP' }) => ({
    containerPort,
    hostPort,
    hostIp: hostIP,
    protocol: protocols.get(protocol) ?? 'TCP',
  }));
}

const protocols: ReadonlyMap<string, Protocol> = new Map([
  ['TCP', 'TCP'],
  ['UDP', 'UDP'],
  ['SCTP', 'SCTP'],
]);

/** A port without a name is told from others by all there is of it, its address family included. */
function keyOf({
  name = '',
  hostIP = '',
  protocol = '',
  containerPort,
  hostPort = 0,
}: ContainerPort): string {
  if (name !== '') return name;
  const family = hostIP === '' ? 'any' : isIPv6(hostIP) ? 'v6' : 'v4';
  return `${family}-${protocol}-${hostIP}:${containerPort}:${hostPort}`;
}
