import { type ApiResource, apiResources, isJsonObject, type JsonObject } from '../../api/index.ts';
import type { ObjectReader } from '../api/api-types.ts';
import type { StoredObject } from '../api/stored-object.ts';

/** Names of objects in its own namespace that a pod needs. */
export interface PodReferences {
  readonly secrets: ReadonlySet<string>;
  readonly configMaps: ReadonlySet<string>;
  readonly claims: ReadonlySet<string>;
  readonly serviceAccount: string | undefined;
  /** Audiences of tokens in its volumes; empty stands for the server's own. */
  readonly audiences: ReadonlySet<string>;
  /** CSI drivers of inline volumes. */
  readonly drivers: ReadonlySet<string>;
}

interface Found {
  readonly secrets: Set<string>;
  readonly configMaps: Set<string>;
  readonly claims: Set<string>;
  readonly audiences: Set<string>;
  readonly drivers: Set<string>;
}

/** By the field that refers: where the name is, and of what. */
const referring: Readonly<Record<string, readonly (readonly [path: string, of: keyof Found])[]>> = {
  secretRef: [['name', 'secrets']],
  secretKeyRef: [['name', 'secrets']],
  nodePublishSecretRef: [['name', 'secrets']],
  azureFile: [['secretName', 'secrets']],
  secret: [
    ['secretName', 'secrets'],
    ['name', 'secrets'],
  ],
  configMap: [['name', 'configMaps']],
  configMapRef: [['name', 'configMaps']],
  configMapKeyRef: [['name', 'configMaps']],
  persistentVolumeClaim: [['claimName', 'claims']],
  csi: [['driver', 'drivers']],
};

export function referencesOf(pod: StoredObject): PodReferences {
  const found: Found = {
    secrets: new Set(),
    configMaps: new Set(),
    claims: new Set(),
    audiences: new Set(),
    drivers: new Set(),
  };
  const {
    imagePullSecrets = [],
    volumes = [],
    serviceAccountName,
  } = (pod.spec ?? {}) as {
    readonly imagePullSecrets?: readonly { readonly name?: string }[];
    readonly volumes?: readonly JsonObject[];
    readonly serviceAccountName?: string;
  };
  for (const { name } of imagePullSecrets) if (name !== undefined) found.secrets.add(name);
  for (const { name, ephemeral } of volumes) {
    if (ephemeral !== undefined) found.claims.add(`${pod.metadata.name}-${name}`);
  }
  gather(pod.spec, found);
  return { ...found, serviceAccount: serviceAccountName };
}

function gather(value: unknown, found: Found): void {
  if (Array.isArray(value)) for (const item of value) gather(item, found);
  if (!isJsonObject(value)) return;
  for (const [field, inner] of Object.entries(value)) {
    if (isJsonObject(inner)) note(field, inner, found);
    gather(inner, found);
  }
}

function note(field: string, value: JsonObject, found: Found): void {
  for (const [path, of] of referring[field] ?? []) {
    const name = value[path];
    if (typeof name === 'string' && name !== '') found[of].add(name);
  }
  if (field === 'serviceAccountToken') found.audiences.add(String(value['audience'] ?? ''));
}

/** What of the API a pod may not refer to when a node makes it, in the words of the server; undefined if nothing. */
export function referencedResource(pod: StoredObject): string | undefined {
  const references = referencesOf(pod);
  if ((references.serviceAccount ?? '') !== '') return 'serviceaccounts';
  if (references.secrets.size > 0) return 'secrets';
  if (references.configMaps.size > 0) return 'configmaps';
  if (((pod.spec?.['resourceClaims'] ?? []) as readonly unknown[]).length > 0) return 'resourceclaims';
  if (references.claims.size > 0) return 'persistentvolumeclaims';
  if (references.audiences.size > 0) return 'serviceaccounts (via projected volumes)';
  if (references.drivers.size > 0) return 'csidrivers (via CSI volumes)';
  return undefined;
}

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
