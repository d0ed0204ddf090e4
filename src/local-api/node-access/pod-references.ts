import { type ApiResource, apiResources, isJsonObject, type JsonObject } from '../../api/index.ts';
import type { ObjectReader } from '../api/api-types.ts';
import type { StoredObject } from '../api/stored-object.ts';

/** The names of the objects that a pod references in its namespace. */
export interface PodObjectReferences {
  readonly secrets: ReadonlySet<string>;
  readonly configMaps: ReadonlySet<string>;
  readonly claims: ReadonlySet<string>;
  readonly serviceAccount: string | undefined;
  /**
   * The audiences of projected tokens; an empty string stands for the audience of the API server.
   */
  readonly audiences: ReadonlySet<string>;
  /** The CSI drivers of inline volumes. */
  readonly drivers: ReadonlySet<string>;
}

interface MutableReferences {
  readonly secrets: Set<string>;
  readonly configMaps: Set<string>;
  readonly claims: Set<string>;
  readonly audiences: Set<string>;
  readonly drivers: Set<string>;
}

/** For each field with a reference, the path of the object name and the kind of object. */
const referenceFields: Readonly<
  Record<string, readonly (readonly [path: string, of: keyof MutableReferences])[]>
> = {
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

/**
 * A cache of references by pod. Stored objects never change, and each read by a node needs the
 * references of its pods.
 */
const referencesOfPods = new WeakMap<StoredObject, PodObjectReferences>();

export function referencesOf(pod: StoredObject): PodObjectReferences {
  const known = referencesOfPods.get(pod);
  if (known !== undefined) return known;
  const references = findReferences(pod);
  if (Object.isFrozen(pod)) referencesOfPods.set(pod, references);
  return references;
}

function findReferences(pod: StoredObject): PodObjectReferences {
  const found: MutableReferences = {
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
  collect(pod.spec, found);
  return { ...found, serviceAccount: serviceAccountName };
}

function collect(value: unknown, found: MutableReferences): void {
  if (Array.isArray(value)) for (const item of value) collect(item, found);
  if (!isJsonObject(value)) return;
  for (const [field, inner] of Object.entries(value)) {
    if (isJsonObject(inner)) collectField(field, inner, found);
    collect(inner, found);
  }
}

function collectField(field: string, value: JsonObject, found: MutableReferences): void {
  for (const [path, of] of referenceFields[field] ?? []) {
    const name = value[path];
    if (typeof name === 'string' && name !== '') found[of].add(name);
  }
  if (field === 'serviceAccountToken') found.audiences.add(String(value['audience'] ?? ''));
}

/**
 * The first kind of API object that a pod references and that mirror pods must not reference, as
 * the error of kube-apiserver names it; undefined if the pod references none.
 */
export function firstReferencedResource(pod: StoredObject): string | undefined {
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
 * The annotation with the file from which an object was created. A user who writes manifest files
 * controls the node, so static pods may reference objects from manifests although no API pod
 * references them.
 */
export const manifestAnnotation = 'kubeling/manifest';

type Objects = Pick<ObjectReader, 'get'>;

const resources: readonly ApiResource[] = Object.values(apiResources);

/** Whether an object was created from a manifest file. */
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

/** Whether all objects that a pod references were created from manifests. */
export function referencesOnlyManifestObjects(pod: StoredObject, objects: Objects): boolean {
  const {
    secrets,
    configMaps,
    claims,
    serviceAccount = '',
    audiences,
    drivers,
  }: PodObjectReferences = referencesOf(pod);
  const others = ((pod.spec?.['resourceClaims'] ?? []) as readonly unknown[]).length;
  if (serviceAccount !== '' || audiences.size + drivers.size + others > 0) return false;
  const used = [
    ...[...secrets].map((name) => [apiResources.secrets, name] as const),
    ...[...configMaps].map((name) => [apiResources.configMaps, name] as const),
    ...[...claims].map((name) => [apiResources.persistentVolumeClaims, name] as const),
  ];
  return used.every(([resource, name]) => isFromManifest(resource, pod.metadata.namespace, name, objects));
}
