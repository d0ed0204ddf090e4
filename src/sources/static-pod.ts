import type { PodSpec, Toleration, Pod as WrittenPod } from '../kinds/index.ts';
import { annotations, type Pod, type PodUid, sameJson } from '../pods/index.ts';
import type { ManifestPlace } from './manifest-place.ts';

/**
 * Makes a defaulted manifest the pod of this node: named after the node, as the same manifest may lie on many, bound to
 * it, and known by its UID.
 */
export function toStaticPod(
  manifest: WrittenPod & { readonly spec: PodSpec },
  uid: PodUid,
  place: ManifestPlace,
): Pod {
  const { metadata = {}, spec } = manifest;
  return {
    ...manifest,
    metadata: {
      ...metadata,
      uid,
      name: nameOnNode(metadata.name ?? '', place.nodeName),
      namespace: metadata.namespace || 'default',
      annotations: { ...metadata.annotations, [annotations.hash]: uid },
    },
    spec: {
      ...spec,
      nodeName: place.nodeName,
      ...(place.source === 'file' && { tolerations: withEviction(spec.tolerations ?? []) }),
    },
    status: { ...manifest.status, phase: 'Pending' },
  };
}

export function nameOnNode(name: string, nodeName: string): string {
  return `${name}-${nodeName.toLowerCase()}`;
}

const staysOnBadNode: Toleration = { operator: 'Exists', effect: 'NoExecute' };

/** Pods of the node itself stay when the node is in trouble: they may be what heals it. */
function withEviction(tolerations: readonly Toleration[]): readonly Toleration[] {
  const alike = (one: Toleration) =>
    !one.key &&
    !one.value &&
    one.operator === staysOnBadNode.operator &&
    one.effect === staysOnBadNode.effect;
  if (tolerations.some((one) => sameJson(one, staysOnBadNode))) return tolerations;
  return tolerations.some(alike)
    ? tolerations.map((one) => (alike(one) ? staysOnBadNode : one))
    : [...tolerations, staysOnBadNode];
}
