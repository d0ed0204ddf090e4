import { isIP } from 'node:net';
import type { Service, ServicePort, ServiceSpec } from '../../kinds/index.ts';
import { KubelingError, type Random, randomInt } from '../../lib/index.ts';
import { dnsLabel } from '../../pods/validation/index.ts';
import { canonicalIp, ipBytes, ipText } from '../../protocols/x509/index.ts';
import type { FieldCause, ResourceStrategy, StoredObject, WriteContext } from '../api/index.ts';
import { invalid as refusal } from '../api/index.ts';
import { invalid } from '../validation/causes.ts';
import { validatorFor, withFields } from '../validation/metadata.ts';
import { serverUser, services } from './resources.ts';
import { addressesCauses, serviceCauses, serviceUpdateCauses } from './service-causes.ts';

const nodePorts = { first: 30_000, last: 32_767 } as const;
const affinitySeconds = 10_800;

export function serviceStrategy(range: ClusterIpRange): ResourceStrategy {
  return {
    status: 'separate',
    createOnUpdate: 'allowed',
    prepare: (object, write) => preparedService(object, write, range),
    admit: (object, write) => (write.verb === 'delete' ? object : withAllocations(object, write, range)),
    validate: validatorFor(dnsLabel, serviceUpdateCauses, serviceCauses),
  };
}

function asService(object: StoredObject): Service {
  return object as unknown as Service;
}

export function isHeadless({ clusterIP }: ServiceSpec): boolean {
  return clusterIP === 'None';
}

function needsAddress({ type }: ServiceSpec): boolean {
  return type !== 'ExternalName';
}

function needsNodePorts({ type, allocateLoadBalancerNodePorts }: ServiceSpec): boolean {
  return type === 'NodePort' || (type === 'LoadBalancer' && allocateLoadBalancerNodePorts !== false);
}

function preparedService(
  object: StoredObject,
  { before, subresource }: WriteContext,
  range: ClusterIpRange,
): StoredObject {
  if (subresource !== undefined) return object;
  const given = withDefaults(asService(object).spec ?? {});
  const old = before === undefined ? undefined : asService(before).spec;
  const spec = withIpFamilies(withSyncedClusterIps(withPreservedFields(given, old), old), range);
  const status = before === undefined ? { loadBalancer: {} } : before.status;
  return withFields(object, { spec, status });
}

function withDefaults(spec: ServiceSpec): ServiceSpec {
  const type = valueOr(spec.type, 'ClusterIP');
  const sessionAffinity = valueOr(spec.sessionAffinity, 'None');
  const isOutside = type === 'NodePort' || type === 'LoadBalancer' || (spec.externalIPs ?? []).length > 0;
  return withFields<ServiceSpec & Record<string, unknown>>(
    { ...spec },
    {
      type,
      sessionAffinity,
      sessionAffinityConfig: affinityConfig(sessionAffinity, spec),
      ports: spec.ports?.map(defaultPort),
      externalTrafficPolicy: isOutside
        ? valueOr(spec.externalTrafficPolicy, 'Cluster')
        : spec.externalTrafficPolicy,
      internalTrafficPolicy:
        type === 'ExternalName' ? spec.internalTrafficPolicy : valueOr(spec.internalTrafficPolicy, 'Cluster'),
      allocateLoadBalancerNodePorts:
        type === 'LoadBalancer'
          ? (spec.allocateLoadBalancerNodePorts ?? true)
          : spec.allocateLoadBalancerNodePorts,
    },
  );
}

function valueOr(value: string | undefined, otherwise: string): string {
  return value === undefined || value === '' ? otherwise : value;
}

function affinityConfig(affinity: string, { sessionAffinityConfig: given }: ServiceSpec) {
  if (affinity === 'None') return undefined;
  if (affinity !== 'ClientIP' || given?.clientIP?.timeoutSeconds !== undefined) return given;
  return { clientIP: { timeoutSeconds: affinitySeconds } };
}

function defaultPort(port: ServicePort): ServicePort {
  const { targetPort } = port;
  const isOpen = targetPort === undefined || targetPort === 0 || targetPort === '';
  return { ...port, protocol: valueOr(port.protocol, 'TCP'), targetPort: isOpen ? port.port : targetPort };
}

/** An update that omits server-allocated fields keeps their values. */
function withPreservedFields(spec: ServiceSpec, old: ServiceSpec | undefined): ServiceSpec {
  if (old === undefined) return spec;
  if (!needsAddress(spec) && needsAddress(old)) return withoutClusterIp(spec, old);
  const isSilent = (spec.clusterIP ?? '') === '' && (spec.clusterIPs ?? []).length === 0;
  const address = isSilent && needsAddress(spec) && needsAddress(old) ? addressOf(old) : {};
  const ports = needsNodePorts(spec) ? withPreservedNodePorts(spec.ports ?? [], old.ports ?? []) : spec.ports;
  return {
    ...spec,
    ...address,
    ...(ports === undefined ? {} : { ports: withoutStaleNodePorts(spec, old, ports) }),
  };
}

function addressOf({ clusterIP, clusterIPs }: ServiceSpec): ServiceSpec {
  return { clusterIP, clusterIPs };
}

/** A service that becomes an ExternalName releases its clusterIP, unless the client sets one. */
function withoutClusterIp(spec: ServiceSpec, old: ServiceSpec): ServiceSpec {
  if ((spec.clusterIP ?? '') !== (old.clusterIP ?? '') && (spec.clusterIP ?? '') !== '') return spec;
  const { clusterIP: _, clusterIPs: __, ipFamilies: ___, ipFamilyPolicy: ____, ...rest } = spec;
  const { internalTrafficPolicy: policy, ...others } = rest;
  return policy === old.internalTrafficPolicy ? others : rest;
}

function withPreservedNodePorts(
  ports: readonly ServicePort[],
  old: readonly ServicePort[],
): readonly ServicePort[] {
  const taken = new Set(ports.flatMap(({ nodePort }) => (nodePort ? [nodePort] : [])));
  return ports.map((port) => {
    const previous = old.find((other) => other.port === port.port && other.protocol === port.protocol);
    if ((port.nodePort ?? 0) !== 0 || previous?.nodePort === undefined || taken.has(previous.nodePort))
      return port;
    return { ...port, nodePort: previous.nodePort };
  });
}

/** Removes unchanged node ports when the new service type has none. */
function withoutStaleNodePorts(
  spec: ServiceSpec,
  old: ServiceSpec,
  ports: readonly ServicePort[],
): readonly ServicePort[] {
  if (needsNodePorts(spec) || !needsNodePorts(old)) return ports;
  const had = new Set((old.ports ?? []).map(({ nodePort }) => nodePort));
  return ports.map(({ nodePort, ...port }) =>
    nodePort === undefined || had.has(nodePort) ? port : { ...port, nodePort },
  );
}

/** Sets clusterIP and clusterIPs to the same value after one of them was changed. */
function withSyncedClusterIps(spec: ServiceSpec, old: ServiceSpec | undefined): ServiceSpec {
  const { clusterIP = '', clusterIPs = [] } = spec;
  const isNew = old === undefined;
  if (clusterIP !== '' && clusterIPs.length === 0) return { ...spec, clusterIPs: [clusterIP] };
  const isAddressChanged = !isNew && clusterIP !== (old.clusterIP ?? '');
  const isListSame = !isNew && clusterIPs[0] === (old.clusterIPs ?? [])[0];
  if (isAddressChanged && isListSame && clusterIP !== '') return { ...spec, clusterIPs: [clusterIP] };
  return spec;
}

function withIpFamilies(spec: ServiceSpec, { family }: ClusterIpRange): ServiceSpec {
  if (!needsAddress(spec)) return spec;
  const both = family === 'IPv4' ? ['IPv4', 'IPv6'] : ['IPv6', 'IPv4'];
  const isBare = isHeadless(spec) && Object.keys(spec.selector ?? {}).length === 0;
  const policy = spec.ipFamilyPolicy ?? (isBare ? 'RequireDualStack' : 'SingleStack');
  const families = spec.ipFamilies ?? (isBare && policy !== 'SingleStack' ? both : [family]);
  return { ...spec, ipFamilies: families, ipFamilyPolicy: policy };
}

/** Allocates the missing clusterIP and node ports. */
function withAllocations(object: StoredObject, write: WriteContext, range: ClusterIpRange): StoredObject {
  const { spec } = asService(object);
  if (spec === undefined || write.subresource !== undefined || !needsAddress(spec)) return object;
  const invalidAddresses = addressesCauses(spec);
  const causes = invalidAddresses.length > 0 ? invalidAddresses : stackCauses(spec, range);
  if (causes.length > 0) throw refusal({ resource: services, name: object.metadata.name }, causes);
  const others = write.objects
    .all(services)
    .filter(({ metadata }) => metadata.uid !== (write.before?.metadata.uid ?? ''))
    .map((other) => asService(other).spec ?? {});
  const withAddress = isHeadless(spec) ? spec : withClusterIp(object, spec, others, write, range);
  return withFields(object, {
    spec: needsNodePorts(spec) ? withNodePorts(object, withAddress, others, write) : withAddress,
  });
}

/** Validates the IP families: only single-stack services are supported. */
function stackCauses(spec: ServiceSpec, { family }: ClusterIpRange): readonly FieldCause[] {
  if (isHeadless(spec)) return [];
  const { ipFamilyPolicy: policy, ipFamilies = [] } = spec;
  const isDual = policy === 'RequireDualStack';
  return [
    ...(isDual
      ? [invalid('spec.ipFamilyPolicy', policy, 'this cluster is not configured for dual-stack services')]
      : []),
    ...ipFamilies.flatMap((one, index) =>
      one === family ? [] : [invalid(`spec.ipFamilies[${index}]`, one, 'not configured on this cluster')],
    ),
  ];
}

function withClusterIp(
  object: StoredObject,
  spec: ServiceSpec,
  others: readonly ServiceSpec[],
  { before, user, random }: WriteContext,
  range: ClusterIpRange,
): ServiceSpec {
  const used = new Set(others.flatMap(({ clusterIPs = [] }) => clusterIPs.map(canonicalAddress)));
  const requested = spec.clusterIP ?? '';
  if (requested === '') {
    const free = range.findFree(used, random);
    if (free === undefined) throw clusterIpError(object, spec, 'failed to allocate IP: range is full');
    return { ...spec, clusterIP: free, clusterIPs: [free] };
  }
  const had = before === undefined ? '' : (asService(before).spec?.clusterIP ?? '');
  // An address that was set before is kept here: validation rejects a change of an immutable
  // clusterIP. The server's own Service may have any address.
  if (had !== '' || isIP(requested) === 0 || user.name === serverUser.name) return spec;
  if (!range.has(requested))
    throw clusterIpError(
      object,
      spec,
      `failed to allocate IP ${requested}: the provided network does not match the current range`,
    );
  if (used.has(requested))
    throw clusterIpError(
      object,
      spec,
      `failed to allocate IP ${requested}: provided IP is already allocated`,
    );
  return spec;
}

function clusterIpError(object: StoredObject, { clusterIPs = [] }: ServiceSpec, why: string): Error {
  return refusal({ resource: services, name: object.metadata.name }, [
    invalid('spec.clusterIPs', clusterIPs, why),
  ]);
}

function withNodePorts(
  object: StoredObject,
  spec: ServiceSpec,
  others: readonly ServiceSpec[],
  { random }: WriteContext,
): ServiceSpec {
  const used = new Set(others.flatMap(({ ports = [] }) => ports.map(({ nodePort }) => nodePort)));
  const ports = (spec.ports ?? []).map((port, index) => {
    const requested = port.nodePort ?? 0;
    if (requested === 0) {
      const nodePort = findFreeNodePort(used, random.next());
      used.add(nodePort);
      return { ...port, nodePort };
    }
    const why = nodePortProblem(requested, used);
    if (why !== undefined)
      throw refusal({ resource: services, name: object.metadata.name }, [
        invalid(`spec.ports[${index}].nodePort`, requested, why),
      ]);
    return port;
  });
  return { ...spec, ports };
}

function nodePortProblem(port: number, used: ReadonlySet<number | undefined>): string | undefined {
  const { first, last } = nodePorts;
  if (port < first || port > last)
    return `provided port is not in the valid range. The range of valid ports is ${first}-${last}`;
  return used.has(port) ? 'provided port is already allocated' : undefined;
}

/**
 * Finds a free node port. If all are in use the first one is assigned twice, which is harmless
 * because no service proxy listens on node ports here.
 */
function findFreeNodePort(used: ReadonlySet<number | undefined>, chance: number): number {
  const { first, last } = nodePorts;
  const count = last - first + 1;
  const begin = Math.floor(chance * count);
  const steps = Array.from({ length: count }, (_, step) => first + ((begin + step) % count));
  return steps.find((port) => !used.has(port)) ?? first;
}

/** The service CIDR, from which clusterIPs are allocated, except its first and last address. */
export class ClusterIpRange {
  readonly text: string;
  readonly family: 'IPv4' | 'IPv6';
  readonly #first: bigint;
  readonly #size: bigint;

  constructor(text: string) {
    const [address = '', bits = ''] = text.split('/');
    const bytes = ipBytes(address);
    const width = (bytes?.length ?? 0) * 8;
    if (bytes === undefined || !/^\d{1,3}$/.test(bits) || Number(bits) > width - 2)
      throw new KubelingError(
        'CONFIG_INVALID',
        `Cannot allocate clusterIPs: the service CIDR must be a range such as 10.96.0.0/16: current value is ${JSON.stringify(text)}`,
      );
    this.text = text;
    this.family = width === 32 ? 'IPv4' : 'IPv6';
    this.#size = 1n << BigInt(width - Number(bits));
    this.#first = (numberOf(bytes) / this.#size) * this.#size;
  }

  has(address: string): boolean {
    const bytes = ipBytes(address);
    if (bytes === undefined || bytes.length !== this.#bytes) return false;
    const offset = numberOf(bytes) - this.#first;
    return offset > 0n && offset < this.#size - 1n;
  }

  /** Returns a free address, searched from a random start; undefined if all are in use. */
  findFree(used: ReadonlySet<string>, random: Random): string | undefined {
    const usable = Number(this.#size - 2n > maxUsableAddresses ? maxUsableAddresses : this.#size - 2n);
    const begin = randomInt(random, usable);
    for (let step = 0; step < usable; step++) {
      const address = this.#at(1n + BigInt((begin + step) % usable));
      if (!used.has(address)) return address;
    }
    return undefined;
  }

  get #bytes(): number {
    return this.family === 'IPv4' ? 4 : 16;
  }

  #at(offset: bigint): string {
    const hex = (this.#first + offset).toString(16).padStart(this.#bytes * 2, '0');
    return ipText(Buffer.from(hex, 'hex')) ?? '';
  }
}

/** The maximum number of allocated addresses: only the beginning of a larger range is used. */
const maxUsableAddresses = 65_534n;

/** The canonical form of an IP address for comparisons; an invalid address is unchanged. */
function canonicalAddress(address: string): string {
  return canonicalIp(address) ?? address;
}

function numberOf(bytes: Buffer): bigint {
  return BigInt(`0x${bytes.toString('hex')}`);
}
