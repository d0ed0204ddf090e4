import { type ApiResource, apiResources } from '../../api/index.ts';
import type { ObjectReader } from './contract.ts';
import { type PodReferences, referencesOf } from './pod-references.ts';
import type { StoredObject } from './stored-object.ts';

/**
 * Names the file an object was written in. Whoever may put files there rules the node, so its static pods may use what
 * lies beside them; no pod of the API tells that they do.
 */
export const manifestAnnotation = 'kubeling/manifest';

type Objects = Pick<ObjectReader, 'get'>;

const resources: readonly ApiResource[] = Object.values(apiResources);

/** Whether an object was written in a file on the node. */
export function isFromManifest(
  { group, plural }: Pick<ApiResource, 'group' | 'plural'>,
  namespace: string | undefined,
  name: string,
  objects: Objects,
): boolean {
  const resource = resources.find((each) => each.group === group && each.plural === plural);
  const found = resource && objects.get(resource, namespace, name);
  return found?.metadata.annotations?.[manifestAnnotation] !== undefined;
}

/** Whether all a pod refers to was written in files beside it. */
export function usesManifestsOnly(pod: StoredObject, objects: Objects): boolean {
  const {
    secrets,
    configMaps,
    claims,
    serviceAccount = '',
    audiences,
    drivers,
  }: PodReferences = referencesOf(pod);
  const others = ((pod.spec?.['resourceClaims'] ?? []) as readonly unknown[]).length;
  if (serviceAccount !== '' || audiences.size + drivers.size + others > 0) return false;
  const used = [
    ...[...secrets].map((name) => [apiResources.secrets, name] as const),
    ...[...configMaps].map((name) => [apiResources.configMaps, name] as const),
    ...[...claims].map((name) => [apiResources.persistentVolumeClaims, name] as const),
  ];
  return used.every(([resource, name]) => isFromManifest(resource, pod.metadata.namespace, name, objects));
}
