import type { Node, ObjectMeta } from '../kinds/index.ts';
import { labelChanges, labelMemory, ownLabelsAnnotation, registrationLabels } from './own-labels.ts';
import type { NodeSettings } from './settings.ts';

/** Tells the controllers of the cluster that they attach volumes to this node. */
const attachDetachAnnotation = 'volumes.kubernetes.io/controller-managed-attach-detach';
const uninitialized = {
  key: 'node.cloudprovider.kubernetes.io/uninitialized',
  value: 'true',
  effect: 'NoSchedule',
};

/** The Node as it is registered, without its status. */
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

/** What a Node that was there before us gets: what it must have, and the labels we were told to give. */
export function adoptedMetadata(existing: Node, settings: NodeSettings): ObjectMeta {
  return {
    ...existing.metadata,
    labels: relabelled(existing, settings),
    annotations: ownAnnotations(existing.metadata?.annotations ?? {}, settings),
  };
}

/** The same without the labels of --node-labels; those that were remembered stay remembered. */
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
