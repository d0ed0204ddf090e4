import type { JsonObject } from '../../../api/index.ts';
import type { Service, ServicePort } from '../../../kinds/index.ts';
import type { StoredObject } from '../../api/index.ts';
import { ageColumn, ageOf, column, nameColumn, orNone, type Printer, wide } from './column.ts';

export const servicePrinter: Printer = {
  columns: [
    nameColumn,
    column('Type', 'The service type.'),
    column('Cluster-IP', 'The address of the service within the cluster.'),
    column('External-IP', 'The external addresses or the external name of the service.'),
    column('Port(s)', 'The ports of the service with their node ports and protocols.'),
    ageColumn,
    wide('Selector', 'The label selector of the pods of the service.'),
  ],
  cells: (object, nowMs) => {
    const { spec, status } = object as unknown as Service;
    const ingress = (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || '');
    return [
      object.metadata.name,
      spec?.type ?? '',
      spec?.clusterIPs?.[0] ?? '<none>',
      outsideOf(spec, ingress),
      orNone((spec?.ports ?? []).map(portText).join(',')),
      ageOf(object.metadata.creationTimestamp, nowMs),
      labelsText(spec?.selector ?? {}),
    ];
  },
};

function outsideOf(spec: Service['spec'], ingress: readonly string[]): string {
  const external = spec?.externalIPs ?? [];
  switch (spec?.type) {
    case 'ClusterIP':
    case 'NodePort':
      return orNone(external.join(','));
    case 'LoadBalancer':
      return [...balancerAddresses(ingress), ...external].join(',') || '<pending>';
    case 'ExternalName':
      return spec.externalName ?? '';
    default:
      return '<unknown>';
  }
}

function balancerAddresses(ingress: readonly string[]): readonly string[] {
  return [...new Set(ingress.filter((address) => address !== ''))].sort();
}

function portText({ port, nodePort, protocol }: ServicePort): string {
  const onNodes = nodePort === undefined || nodePort === 0 ? '' : `:${nodePort}`;
  return `${port}${onNodes}/${protocol ?? ''}`;
}

function labelsText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.keys(labels).sort();
  return orNone(pairs.map((key) => `${key}=${labels[key] ?? ''}`).join(','));
}

export const endpointsPrinter: Printer = {
  columns: [nameColumn, column('Endpoints', 'The first endpoint addresses with their ports.'), ageColumn],
  cells: (object, nowMs) => [
    object.metadata.name,
    endpointsText(object),
    ageOf(object.metadata.creationTimestamp, nowMs),
  ],
};

const shownEndpoints = 3;

function endpointsText(object: StoredObject): string {
  const subsets = (object['subsets'] ?? []) as readonly JsonObject[];
  if (subsets.length === 0) return '<none>';
  const all = subsets.flatMap(addressesOf);
  const shown = all.slice(0, shownEndpoints).join(',');
  return all.length > shownEndpoints ? `${shown} + ${all.length - shownEndpoints} more...` : shown;
}

function addressesOf(subset: JsonObject): readonly string[] {
  const addresses = ((subset['addresses'] ?? []) as readonly JsonObject[]).map(({ ip }) => String(ip));
  const ports = ((subset['ports'] ?? []) as readonly JsonObject[]).map(({ port }) => String(port));
  if (ports.length === 0) return addresses;
  return ports.flatMap((port) => addresses.map((ip) => `${ip.includes(':') ? `[${ip}]` : ip}:${port}`));
}
