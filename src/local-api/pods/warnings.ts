import {
  type Container,
  type ContainerPort,
  FieldPath,
  type PodSpec,
  type Volume,
} from '../../kinds/index.ts';
import { parseQuantity } from '../../lib/index.ts';
import type { StoredObject } from '../api/index.ts';
import { typed } from './pod-object.ts';

const specPath = FieldPath.root.child('spec');

/** Warnings about valid but questionable fields, in the order of the API server. */
export function warnAboutPod(pod: StoredObject, warn: (text: string) => void): void {
  const { spec } = typed(pod);
  const all = [
    ...aboutName(pod.metadata.name),
    ...aboutNodes(spec),
    ...aboutVolumes(spec.volumes ?? []),
    ...aboutRepeated(spec),
    ...containersOf(spec).flatMap(([container, path]) => aboutContainer(container, path)),
    ...aboutPorts(spec),
  ];
  for (const text of all) warn(text);
}

const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const longestLabel = 63;

function aboutName(name: string): readonly string[] {
  const warnings = [
    ...(name.length > longestLabel ? [`must be no more than ${longestLabel} characters`] : []),
    ...(label.test(name) ? [] : ['must not contain dots']),
  ];
  const what = "this is used in the Pod's hostname, which can result in surprising behavior";
  return warnings.length === 0
    ? []
    : [`metadata.name: ${what}; a DNS label is recommended: [${warnings.join(' ')}]`];
}

/** Deprecated labels and their replacements. */
const deprecatedLabels: Readonly<Record<string, string>> = {
  'beta.kubernetes.io/arch': 'deprecated since v1.14; use "kubernetes.io/arch" instead',
  'beta.kubernetes.io/os': 'deprecated since v1.14; use "kubernetes.io/os" instead',
  'beta.kubernetes.io/instance-type':
    'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
  'failure-domain.beta.kubernetes.io/region':
    'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  'failure-domain.beta.kubernetes.io/zone':
    'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
};

function aboutNodes({ nodeSelector = {}, topologySpreadConstraints = [] }: PodSpec): readonly string[] {
  const selected = Object.keys(nodeSelector).flatMap((key) =>
    deprecatedLabels[key] === undefined
      ? []
      : [`${specPath.child('nodeSelector').key(key)}: ${deprecatedLabels[key]}`],
  );
  const spread = topologySpreadConstraints.flatMap(({ topologyKey, labelSelector }, index) => {
    const at = specPath.child('topologySpreadConstraints').index(index);
    const old = deprecatedLabels[topologyKey];
    return [
      ...(old === undefined ? [] : [`${at.child('topologyKey')}: ${topologyKey} is ${old}`]),
      ...(labelSelector === undefined
        ? [`${at.child('labelSelector')}: a null labelSelector results in matching no pod`]
        : []),
    ];
  });
  return [...selected, ...spread];
}

/** Deprecated and removed volume types. */
const removedVolumeTypes: Readonly<Record<string, string>> = {
  photonPersistentDisk: 'deprecated in v1.11, non-functional in v1.16+',
  gitRepo: 'deprecated in v1.11, and disabled by default in v1.33+',
  scaleIO: 'deprecated in v1.16, non-functional in v1.22+',
  flocker: 'deprecated in v1.22, non-functional in v1.25+',
  quobyte: 'deprecated in v1.22, non-functional in v1.25+',
  glusterfs: 'deprecated in v1.25, non-functional in v1.26+',
  cephfs: 'deprecated in v1.28, non-functional in v1.31+',
  rbd: 'deprecated in v1.28, non-functional in v1.31+',
};

function aboutVolumes(volumes: readonly Volume[]): readonly string[] {
  return volumes.flatMap((volume, index) =>
    Object.keys(volume).flatMap((kind) => {
      const at = specPath.child('volumes').index(index).child(kind);
      return removedVolumeTypes[kind] === undefined ? [] : [`${at}: ${removedVolumeTypes[kind]}`];
    }),
  );
}

function aboutRepeated({ hostAliases = [], imagePullSecrets = [] }: PodSpec): readonly string[] {
  const ips = hostAliases.map(({ ip }) => ip);
  const names = imagePullSecrets.map(({ name }) => name ?? '');
  return [
    ...repeatedIn(ips, (ip, index) => `spec.hostAliases[${index}].ip: duplicate ip "${ip}"`),
    ...repeatedIn(names, (name, index) => `spec.imagePullSecrets[${index}].name: duplicate name "${name}"`),
    ...names.flatMap((name, index) =>
      name === '' ? [`spec.imagePullSecrets[${index}].name: invalid empty name ""`] : [],
    ),
  ];
}

function repeatedIn(
  list: readonly string[],
  describe: (one: string, index: number) => string,
): readonly string[] {
  const seen = new Set<string>();
  return list.flatMap((one, index) => {
    if (seen.has(one)) return [describe(one, index)];
    seen.add(one);
    return [];
  });
}

type Placed = readonly [container: Container, path: FieldPath];

function containersOf(spec: PodSpec): readonly Placed[] {
  return (['initContainers', 'containers', 'ephemeralContainers'] as const).flatMap((list) =>
    (spec[list] ?? []).map((one, index): Placed => [one, specPath.child(list).index(index)]),
  );
}

const wholeByte = 1_000_000_000n;

function aboutContainer({ resources, env = [] }: Container, path: FieldPath): readonly string[] {
  const amounts = (['memory', 'ephemeral-storage'] as const).flatMap((name) =>
    (['limits', 'requests'] as const).flatMap((side) => {
      const amount = resources?.[side]?.[name];
      if (amount === undefined || parseQuantity(amount).nanos % wholeByte === 0n) return [];
      const at = path.child('resources', side).key(name);
      return [`${at}: fractional byte value "${amount}" is invalid, must be an integer`];
    }),
  );
  const seen = new Set<string>();
  const hidden = env.flatMap(({ name, value = '', valueFrom }, index) => {
    const isKnown = seen.has(name);
    seen.add(name);
    const own = `$(${name})`;
    const isBuiltOn = valueFrom === undefined && value !== own && value.includes(own);
    if (!isKnown || isBuiltOn) return [];
    const at = path.child('env').index(index);
    return [`${at}: hides previous definition of "${name}", which may be dropped when using apply`];
  });
  return [...amounts, ...hidden];
}

interface PlacedPort extends ContainerPort {
  readonly at: string;
}

function aboutPorts(spec: PodSpec): readonly string[] {
  const ports = containersOf(spec).flatMap(([{ ports: own = [] }, path]) =>
    own.map((port, index): PlacedPort => ({ ...port, at: path.child('ports').index(index).toString() })),
  );
  const firsts = new Map(ports.toReversed().map((port) => [port.name, port]));
  const names = ports.flatMap(({ name, at }) => {
    const first = firsts.get(name);
    if (!name || first === undefined || first.at === at) return [];
    const which = `services and probes that select ports by name will use ${first.at}`;
    return [`${at}: duplicate port name "${name}" with ${first.at}, ${which}`];
  });
  return [...clashesOf(ports), ...names];
}

/** The maximum number of preceding ports with which a port is compared. */
const maxCompared = 50;
/** The maximum number of warnings in a response header. */
const maxClashes = 100;

function clashesOf(ports: readonly PlacedPort[]): readonly string[] {
  const before = new Map<string, PlacedPort[]>();
  const clashes: string[] = [];
  for (const port of ports) {
    const key = `${port.containerPort} ${port.protocol}`;
    const others = before.get(key) ?? [];
    if (others.length < maxCompared) before.set(key, [...others, port]);
    for (const other of others) clashes.push(...clash(port, other));
    if (clashes.length >= maxClashes) break;
  }
  return clashes.slice(0, maxClashes);
}

function clash(port: PlacedPort, other: PlacedPort): readonly string[] {
  if (port.containerPort !== other.containerPort || port.protocol !== other.protocol) return [];
  const [host, otherHost] = [port.hostPort ?? 0, other.hostPort ?? 0];
  const [ip, otherIp] = [port.hostIP ?? '', other.hostIP ?? ''];
  if (host === otherHost && ip === otherIp) return [`${port.at}: duplicate port definition with ${other.at}`];
  if (host === 0 || otherHost === 0) return [`${port.at}: overlapping port definition with ${other.at}`];
  if (host === otherHost && (ip === '') !== (otherIp === ''))
    return [`${port.at}: dangerously ambiguous port definition with ${other.at}`];
  return [];
}
