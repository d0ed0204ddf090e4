import { apiResources } from '../../../api/index.ts';
import type { ObjectReader, StoredObject } from '../../core/index.ts';
import { typed } from '../pod-object.ts';

const copied = ['topology.kubernetes.io/zone', 'topology.kubernetes.io/region'];

/** Where a node stands, as labels its pods get. */
export function topologyLabels(objects: ObjectReader, node: string): Readonly<Record<string, string>> {
  const labels = objects.get(apiResources.nodes, undefined, node)?.metadata.labels ?? {};
  return Object.fromEntries(
    copied.flatMap((key) => (labels[key] === undefined ? [] : [[key, labels[key]] as const])),
  );
}

/** A pod that is made for a node is labelled at once; the others are when they get one. */
export function admitTopology(pod: StoredObject, objects: ObjectReader): StoredObject {
  const { nodeName } = typed(pod).spec;
  const labels = nodeName ? topologyLabels(objects, nodeName) : {};
  if (Object.keys(labels).length === 0) return pod;
  return { ...pod, metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, ...labels } } };
}
