import type { Node, ObjectMeta, Taint } from '../kinds/index.ts';
import type { NodeSettings } from './settings.ts';

/** A Node with this annotation lets the attach-detach controller attach the volumes of the node. */
const attachDetachAnnotation = 'volumes.kubernetes.io/controller-managed-attach-detach';
const uninitialized = {
  key: 'node.cloudprovider.kubernetes.io/uninitialized',
  value: 'true',
  effect: 'NoSchedule',
};

/** The Node object to register, without its status. */
export function initialNode(settings: NodeSettings): Node {
  const { name, providerId, cloudProvider } = settings;
  const taints = [...settings.taints, ...(cloudProvider === 'external' ? [uninitialized] : [])];
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: registrationLabels(settings),
      annotations: ownAnnotations({}, settings),
    },
    spec: {
      ...(taints.length === 0 ? {} : { taints }),
      ...(providerId === '' ? {} : { providerID: providerId }),
    },
  };
}

/** Adds the required and the configured labels to an existing Node. */
export function adoptedMetadata(existing: Node, settings: NodeSettings): ObjectMeta {
  return {
    ...existing.metadata,
    labels: relabelled(existing, settings),
    annotations: ownAnnotations(existing.metadata?.annotations ?? {}, settings),
  };
}

/**
 * The metadata that an existing Node must have, without the labels of --node-labels; the annotation
 * that records them is kept.
 */
export function requiredMetadata(existing: Node, settings: NodeSettings): ObjectMeta {
  const annotations = attachDetach(existing.metadata?.annotations ?? {}, settings);
  const labels = { ...existing.metadata?.labels, ...registrationLabels({ ...settings, labels: {} }) };
  return { ...existing.metadata, labels, annotations };
}

function relabelled(existing: Node, settings: NodeSettings): Readonly<Record<string, string>> {
  const labels = new Map(Object.entries(existing.metadata?.labels ?? {}));
  for (const [key, value] of Object.entries(labelChanges(existing, settings))) {
    if (value === null) labels.delete(key);
    else labels.set(key, value);
  }
  return Object.fromEntries(labels);
}

function ownAnnotations(
  present: Readonly<Record<string, string>>,
  settings: NodeSettings,
): Readonly<Record<string, string>> {
  const { [ownLabelsAnnotation]: _, ...others } = attachDetach(present, settings);
  const memory = labelMemory(settings);
  return memory === undefined ? others : { ...others, [ownLabelsAnnotation]: memory };
}

function attachDetach(
  present: Readonly<Record<string, string>>,
  { attachDetach }: NodeSettings,
): Readonly<Record<string, string>> {
  const { [attachDetachAnnotation]: _, ...others } = present;
  return attachDetach === 'controller' ? { ...others, [attachDetachAnnotation]: 'true' } : others;
}

/**
 * The labels that a kubelet sets on its node. Those of --node-labels are recorded in an annotation
 * of the Node: the annotation changes in the same write as the labels, is deleted with the Node,
 * and survives the loss of the machine's disk.
 */
export const ownLabelsAnnotation = 'kubeling.dev/node-labels';

type Labels = Readonly<Record<string, string>>;
type LabelSettings = Pick<NodeSettings, 'hostname' | 'architecture' | 'labels'>;

function registrationLabels({ hostname, architecture, labels }: LabelSettings): Labels {
  return {
    'kubernetes.io/hostname': hostname,
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': architecture,
    'beta.kubernetes.io/os': 'linux',
    'beta.kubernetes.io/arch': architecture,
    ...labels,
  };
}

/** Scheduling depends on these labels, so a wrong value is corrected immediately. */
export function assertedLabels({ architecture }: LabelSettings): Labels {
  return { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': architecture };
}

/** Label changes of an existing Node; null removes a label. */
export function labelChanges(
  existing: Node,
  settings: LabelSettings,
): Readonly<Record<string, string | null>> {
  const present = existing.metadata?.labels ?? {};
  const desired = registrationLabels(settings);
  const added = Object.entries(desired).filter(([key, value]) => present[key] !== value);
  // A label that is not configured any more is removed only if its value is the recorded one.
  const dropped = Object.entries(labelsOf(existing)).filter(
    ([key, value]) => !Object.hasOwn(desired, key) && present[key] === value,
  );
  return Object.fromEntries([...added, ...dropped.map(([key]) => [key, null] as const)]);
}

export function labelsOf(node: Node): Labels {
  try {
    const read: unknown = JSON.parse(node.metadata?.annotations?.[ownLabelsAnnotation] ?? '{}');
    if (typeof read !== 'object' || read === null) return {};
    return Object.fromEntries(
      Object.entries(read).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    );
  } catch {
    return {};
  }
}

/** The annotation that records the configured labels; undefined when there are none to record. */
export function labelMemory({ labels }: LabelSettings): string | undefined {
  const entries = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return entries.length === 0 ? undefined : JSON.stringify(Object.fromEntries(entries));
}

/**
 * The configured taints that an existing Node lacks, as text for the log; they are never added to
 * it.
 */
export function taintDrift(existing: Node, taints: readonly Taint[]): readonly string[] {
  const present = existing.spec?.taints ?? [];
  return taints.flatMap(({ key, value = '', effect }) => {
    const same = present.find((taint) => taint.key === key && taint.effect === effect);
    if (same === undefined) return [`${key}=${value}:${effect} is missing`];
    const other = same.value ?? '';
    return other === value ? [] : [`${key}=${value}:${effect} has the value ${JSON.stringify(other)}`];
  });
}
