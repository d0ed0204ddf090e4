import { sameValue } from '../../api/index.ts';
import type { ServicePort, ServiceSpec } from '../../kinds/index.ts';
import { dnsLabel, dnsSubdomain, portName, qualifiedName } from '../../pods/validation/index.ts';
import type { FieldCause, StoredObject, WriteContext } from '../api/index.ts';
import {
  addressCauses,
  duplicate,
  endpointAddressCauses,
  forbiddenField,
  invalid,
  oneOf,
  portCauses,
  required,
} from '../validation/causes.ts';
import { labelCauses } from '../validation/metadata.ts';

function specOf(object: StoredObject): ServiceSpec {
  return (object.spec ?? {}) as ServiceSpec;
}

const protocols = ['SCTP', 'TCP', 'UDP'];

export function serviceCauses(object: StoredObject, { subresource }: WriteContext): readonly FieldCause[] {
  if (subresource === 'status') return [];
  const spec = specOf(object);
  const { ports = [], clusterIP, type } = spec;
  const isHeadless = clusterIP === 'None';
  const names = new Set<string>();
  const needsPorts = ports.length === 0 && !isHeadless && type !== 'ExternalName';
  return [
    ...(needsPorts ? [required('spec.ports')] : []),
    ...typeCauses(spec, isHeadless),
    ...ports.flatMap((port, index) => portsCauses(port, index, ports, names)),
    ...labelCauses(spec.selector ?? {}, 'spec.selector'),
    ...affinityCauses(spec),
    ...(spec.externalIPs ?? []).flatMap((address, index) => externalCauses(address, index)),
    ...oneOf('spec.type', type, ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'], 'refused'),
    ...portTwins(spec),
    ...policyCauses(spec),
  ];
}

function typeCauses(spec: ServiceSpec, isHeadless: boolean): readonly FieldCause[] {
  const { type, clusterIPs = [] } = spec;
  if (type === 'ExternalName') return externalNameCauses(spec);
  if (!isHeadless || (type !== 'LoadBalancer' && type !== 'NodePort')) return [];
  return [
    invalid('spec.clusterIPs[0]', clusterIPs[0] ?? 'None', `may not be set to 'None' for ${type} services`),
  ];
}

function externalNameCauses(spec: ServiceSpec): readonly FieldCause[] {
  const unwanted = [
    ...((spec.clusterIPs ?? []).length > 0 ? ['clusterIPs'] : []),
    ...((spec.ipFamilies ?? []).length > 0 ? ['ipFamilies'] : []),
    ...(spec.ipFamilyPolicy === undefined ? [] : ['ipFamilyPolicy']),
  ].map((field) => forbiddenField(`spec.${field}`, 'may not be set for ExternalName services'));
  const name = (spec.externalName ?? '').replace(/\.$/, '');
  if (name === '') return [...unwanted, required('spec.externalName')];
  return [...unwanted, ...dnsSubdomain(name).map((message) => invalid('spec.externalName', name, message))];
}

function portsCauses(
  port: ServicePort,
  index: number,
  all: readonly ServicePort[],
  seen: Set<string>,
): readonly FieldCause[] {
  const field = `spec.ports[${index}]`;
  return [
    ...portNameCauses(field, port, all, seen),
    ...portCauses(`${field}.port`, port.port),
    ...oneOf(`${field}.protocol`, port.protocol, protocols, 'refused'),
    ...targetCauses(`${field}.targetPort`, port.targetPort),
    ...(port.appProtocol === undefined ? [] : qualifiedName(port.appProtocol)).map((message) =>
      invalid(`${field}.appProtocol`, port.appProtocol, message),
    ),
  ];
}

function portNameCauses(
  field: string,
  { name = '' }: ServicePort,
  all: readonly ServicePort[],
  seen: Set<string>,
): readonly FieldCause[] {
  if (name === '') return all.length > 1 ? [required(`${field}.name`)] : [];
  const isTwin = seen.has(name);
  seen.add(name);
  return [
    ...dnsLabel(name).map((message) => invalid(`${field}.name`, name, message)),
    ...(isTwin ? [duplicate(`${field}.name`, name)] : []),
  ];
}

function targetCauses(field: string, target: number | string | undefined): readonly FieldCause[] {
  if (typeof target === 'number') return portCauses(field, target);
  return target === undefined ? [] : portName(target).map((message) => invalid(field, target, message));
}

const longestAffinitySeconds = 86_400;

function affinityCauses({ sessionAffinity, sessionAffinityConfig }: ServiceSpec): readonly FieldCause[] {
  const field = 'spec.sessionAffinity';
  const known = oneOf(field, sessionAffinity, ['ClientIP', 'None'], 'refused');
  if (sessionAffinity !== 'ClientIP') return known;
  const seconds = sessionAffinityConfig?.clientIP?.timeoutSeconds ?? 0;
  if (seconds > 0 && seconds <= longestAffinitySeconds) return known;
  const detail = `must be greater than 0 and less than ${longestAffinitySeconds}`;
  return [...known, invalid(`${field}Config.clientIP.timeoutSeconds`, seconds, detail)];
}

/**
 * The errors of the service addresses; if there are any, no other errors of the service are
 * returned.
 */
export function addressesCauses(spec: ServiceSpec): readonly FieldCause[] {
  if (spec.type === 'ExternalName') return [];
  const { clusterIP = '', clusterIPs = [], ipFamilies = [], ipFamilyPolicy } = spec;
  const field = 'spec.clusterIPs';
  return [
    ...firstCauses(field, clusterIP, clusterIPs),
    ...ipFamilies.flatMap((family, index) => [
      ...oneOf(`spec.ipFamilies[${index}]`, family, ['IPv4', 'IPv6']),
      ...(ipFamilies.indexOf(family) < index ? [duplicate(`spec.ipFamilies[${index}]`, family)] : []),
    ]),
    ...oneOf('spec.ipFamilyPolicy', ipFamilyPolicy, ['PreferDualStack', 'RequireDualStack', 'SingleStack']),
    ...clusterIPs.flatMap((address, index) => listCauses(field, address, index, clusterIPs)),
    ...(clusterIPs.length > 2 ? [invalid(field, clusterIPs, 'may only hold up to 2 values')] : []),
  ];
}

function firstCauses(field: string, address: string, list: readonly string[]): readonly FieldCause[] {
  if (address === '')
    return list.length === 0 ? [] : [invalid(field, list, 'must be empty when `clusterIP` is not specified')];
  if (list.length === 0) return [required(field)];
  return list[0] === address ? [] : [invalid(field, list, 'first value must match `clusterIP`')];
}

function listCauses(
  field: string,
  address: string,
  index: number,
  all: readonly string[],
): readonly FieldCause[] {
  if (index > 0 || address !== 'None') return addressCauses(`${field}[${index}]`, address);
  return all.length > 1 ? [invalid(field, all, "'None' must be the first and only value")] : [];
}

function externalCauses(address: string, index: number): readonly FieldCause[] {
  const field = `spec.externalIPs[${index}]`;
  const causes = addressCauses(field, address);
  return causes.length > 0 ? causes : endpointAddressCauses(field, address);
}

function portTwins({ type, ports = [] }: ServiceSpec): readonly FieldCause[] {
  const seen = new Set<string>();
  return ports.flatMap((port, index) => {
    const field = `spec.ports[${index}]`;
    const nodePort = port.nodePort ?? 0;
    const [ofNode, own] = [`${port.protocol} node ${nodePort}`, `${port.protocol} ${port.port}`];
    const causes = [
      ...(type === 'ClusterIP' && nodePort !== 0
        ? [forbiddenField(`${field}.nodePort`, "may not be used when `type` is 'ClusterIP'")]
        : []),
      ...(nodePort !== 0 && seen.has(ofNode) ? [duplicate(`${field}.nodePort`, nodePort)] : []),
      ...(seen.has(own) ? [duplicate(field, portInGoFields(port))] : []),
    ];
    seen.add(ofNode).add(own);
    return causes;
  });
}

/**
 * The service port with Go field names, as kube-apiserver prints a duplicate port in the error; it
 * compares only protocol and port.
 */
function portInGoFields({ port, protocol }: ServicePort) {
  return { Name: '', Protocol: protocol, AppProtocol: null, Port: port, TargetPort: 0, NodePort: 0 };
}

function policyCauses(spec: ServiceSpec): readonly FieldCause[] {
  const { type, externalIPs = [], externalTrafficPolicy = '' } = spec;
  const isOutside = type === 'NodePort' || type === 'LoadBalancer' || externalIPs.length > 0;
  const onlyBalanced = [
    ...((spec.loadBalancerSourceRanges ?? []).length > 0 ? ['LoadBalancerSourceRanges'] : []),
    ...(spec.allocateLoadBalancerNodePorts === undefined ? [] : ['allocateLoadBalancerNodePorts']),
    ...(spec.loadBalancerClass === undefined ? [] : ['loadBalancerClass']),
  ];
  return [
    ...(type === 'LoadBalancer'
      ? []
      : onlyBalanced.map((field) =>
          forbiddenField(`spec.${field}`, "may only be used when `type` is 'LoadBalancer'"),
        )),
    ...(externalTrafficPolicy !== '' && !isOutside
      ? [
          invalid(
            'spec.externalTrafficPolicy',
            externalTrafficPolicy,
            'may only be set for externally-accessible services',
          ),
        ]
      : oneOf('spec.externalTrafficPolicy', externalTrafficPolicy, ['Cluster', 'Local'])),
    ...oneOf('spec.internalTrafficPolicy', spec.internalTrafficPolicy, ['Cluster', 'Local']),
    ...oneOf('spec.trafficDistribution', spec.trafficDistribution, [
      'PreferClose',
      'PreferSameNode',
      'PreferSameZone',
    ]),
  ];
}

/** A clusterIP is immutable, but may be added or removed when the service type changes. */
export function serviceUpdateCauses(
  object: StoredObject,
  { before, subresource }: WriteContext,
): readonly FieldCause[] {
  if (before === undefined || subresource !== undefined) return [];
  const [old, spec] = [specOf(before), specOf(object)];
  if (old.type === 'ExternalName' || spec.type === 'ExternalName') return [];
  const { clusterIPs: had = [] } = old;
  const { clusterIPs: has = [] } = spec;
  if (had.length > 0 && has.length === 0)
    return [invalid('spec.clusterIPs[0]', has, 'primary clusterIP can not be unset')];
  return [
    ...(had.length > 0 && had[0] !== has[0]
      ? [invalid('spec.clusterIPs[0]', has, 'may not change once set')]
      : []),
    ...familyChange(old, spec),
    ...classChange(old, spec),
  ];
}

function familyChange(old: ServiceSpec, spec: ServiceSpec): readonly FieldCause[] {
  const isHeadless = old.clusterIP === 'None' || spec.clusterIP === 'None';
  const [was, is] = [old.ipFamilies?.[0], spec.ipFamilies?.[0]];
  if (isHeadless || was === undefined || was === is) return [];
  return [invalid('spec.ipFamilies[0]', spec.ipFamilies ?? [], 'may not change once set')];
}

function classChange(old: ServiceSpec, spec: ServiceSpec): readonly FieldCause[] {
  if (old.type !== 'LoadBalancer' || spec.type !== 'LoadBalancer') return [];
  if (sameValue(old.loadBalancerClass, spec.loadBalancerClass)) return [];
  return [invalid('spec.loadBalancerClass', spec.loadBalancerClass ?? null, 'may not change once set')];
}
