import type { Node, Taint } from '../kinds/index.ts';
import type { NodeSettings } from './settings.ts';

/**
 * The labels a kubelet gives its node. Those of --node-labels are remembered in an annotation of the Node itself: it
 * changes in the same write as they do, goes with the Node, and survives a machine that lost its disk.
 */
export const ownLabelsAnnotation = 'kubeling.dev/node-labels';

type Labels = Readonly<Record<string, string>>;
type LabelSettings = Pick<NodeSettings, 'hostname' | 'architecture' | 'labels'>;

export function registrationLabels({ hostname, architecture, labels }: LabelSettings): Labels {
  return {
    'kubernetes.io/hostname': hostname,
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': architecture,
    'beta.kubernetes.io/os': 'linux',
    'beta.kubernetes.io/arch': architecture,
    ...labels,
  };
}

/** Others find images and pods for the machine by these: a wrong one is put right at once. */
export function assertedLabels({ architecture }: LabelSettings): Labels {
  return { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': architecture };
}

/** What a Node that was there before us gets; null for a label that is to go. */
export function labelChanges(
  existing: Node,
  settings: LabelSettings,
): Readonly<Record<string, string | null>> {
  const present = existing.metadata?.labels ?? {};
  const wanted = registrationLabels(settings);
  const added = Object.entries(wanted).filter(([key, value]) => present[key] !== value);
  // What somebody else has set to another value since is no longer ours to take away.
  const dropped = Object.entries(rememberedLabels(existing)).filter(
    ([key, value]) => !Object.hasOwn(wanted, key) && present[key] === value,
  );
  return Object.fromEntries([...added, ...dropped.map(([key]) => [key, null] as const)]);
}

export function rememberedLabels(node: Node): Labels {
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

/** The annotation; undefined where there is nothing to remember. */
export function labelMemory({ labels }: LabelSettings): string | undefined {
  const entries = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return entries.length === 0 ? undefined : JSON.stringify(Object.fromEntries(entries));
}

/** The taints this node would register with that an existing Node does not have, in words; they are never put back. */
export function taintDrift(existing: Node, taints: readonly Taint[]): readonly string[] {
  const present = existing.spec?.taints ?? [];
  return taints.flatMap(({ key, value = '', effect }) => {
    const same = present.find((taint) => taint.key === key && taint.effect === effect);
    if (same === undefined) return [`${key}=${value}:${effect} is missing`];
    const other = same.value ?? '';
    return other === value ? [] : [`${key}=${value}:${effect} has the value ${JSON.stringify(other)}`];
  });
}
