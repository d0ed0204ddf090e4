import { type ApiResource, apiResources, type JsonObject } from '../api/index.ts';
import type { KindTable } from '../kinds/index.ts';
import { KubelingError } from '../lib/index.ts';
import type { StoredObject } from './api/index.ts';
import {
  type ApiCall,
  type Catalogue,
  manifestAnnotation,
  type ObjectReader,
  type ResourceVerb,
  type ServerContext,
  StatusError,
} from './api/index.ts';
import { BodyDecoder } from './http/body/decode-body.ts';
import { serverUser } from './kinds/resources.ts';

/** Applies the API objects of manifest files. */
export interface ManifestApplier {
  /** Creates or updates the object; throws if it is rejected. */
  apply(object: JsonObject, file: string): void;
  /** The names of all objects that were created from manifests. */
  applied(): readonly string[];
  remove(name: string): void;
  /**
   * Resolves when the store accepts more writes. Callers await it before each change, because
   * changes are applied faster than they are persisted.
   */
  whenAcceptingWrites(signal: AbortSignal): Promise<void>;
  /** The name of the object with its plural and namespace; throws if the object has no name. */
  nameOf(object: JsonObject): string;
}

const manifestResources: Readonly<Record<string, ApiResource>> = {
  ConfigMap: apiResources.configMaps,
  Secret: apiResources.secrets,
  PersistentVolume: apiResources.persistentVolumes,
  PersistentVolumeClaim: apiResources.persistentVolumeClaims,
};

interface ObjectLocation {
  readonly resource: ApiResource;
  readonly namespace: string | undefined;
  readonly name: string;
}

export function createManifestApplier(
  context: ServerContext,
  catalogue: Catalogue,
  table: KindTable,
): ManifestApplier {
  const decoder = new BodyDecoder(table);
  const call = (verb: ResourceVerb, { resource, namespace, name }: ObjectLocation, body?: JsonObject) =>
    context.execute({
      ...serverCall,
      verb,
      entry: catalogue.of(resource),
      namespace,
      name: verb === 'create' ? undefined : name,
      body,
    });
  return {
    apply(object, file) {
      const location = locationOf(object);
      const { resource, namespace, name } = location;
      // Validates strictly like kubectl: otherwise a misspelled field would only be noticed when a
      // pod uses the object.
      const how = { expected: resource, validation: 'Strict', warn: () => {} } as const;
      const desired = annotated(decoder.decodeManifest(object, how), location, file);
      const before = context.objects.get(resource, namespace, name);
      if (before === undefined) call('create', location, desired);
      else if (before.metadata.annotations?.[manifestAnnotation] === undefined)
        throw notFromManifest(object, location);
      else if (before.metadata.deletionTimestamp === undefined)
        call('update', location, mergeServerFields(desired, before));
    },
    applied: () => namesFromManifests(context.objects),
    nameOf: (object) => nameOf(locationOf(object)),
    whenAcceptingWrites: (signal) => context.whenAcceptingWrites(signal),
    remove(name) {
      const [plural, namespace = '', own = ''] = name.split('/');
      const resource = Object.values(manifestResources).find((each) => each.plural === plural);
      if (resource === undefined) return;
      try {
        call('delete', { resource, namespace: namespace === '' ? undefined : namespace, name: own });
      } catch (error) {
        if (!(error instanceof StatusError) || error.status.code !== 404) throw error;
      }
    },
  };
}

const serverCall: Omit<ApiCall, 'verb' | 'entry' | 'namespace' | 'name' | 'body'> = {
  user: serverUser,
  subresource: undefined,
  query: new URLSearchParams(),
  patch: undefined,
  dryRun: false,
  warn: () => {},
};

function nameOf({ resource, namespace = '', name }: ObjectLocation): string {
  return `${resource.plural}/${namespace}/${name}`;
}

function namesFromManifests(objects: ObjectReader): readonly string[] {
  return Object.values(manifestResources).flatMap((resource) =>
    objects
      .all(resource)
      .filter(({ metadata }) => metadata.annotations?.[manifestAnnotation] !== undefined)
      .map(({ metadata }) => nameOf({ resource, namespace: metadata.namespace, name: metadata.name })),
  );
}

function locationOf(object: JsonObject): ObjectLocation {
  const kind = String(object['kind']);
  const resource = manifestResources[kind];
  const { name, namespace = 'default' } = (object['metadata'] ?? {}) as { name?: string; namespace?: string };
  if (resource === undefined)
    throw new KubelingError(
      'API_INVALID',
      `Cannot use an object: its kind must be ConfigMap, Secret, PersistentVolume or PersistentVolumeClaim: current value is ${kind}`,
    );
  if (typeof name !== 'string' || name === '')
    throw new KubelingError(
      'API_INVALID',
      `Cannot use a ${kind}: metadata.name must be a name: current value is ${JSON.stringify(name) ?? 'none'}`,
    );
  return { resource, name, namespace: resource.scope === 'cluster' ? undefined : String(namespace) };
}

/**
 * The existing object was created by a client: the manifest must neither overwrite nor later delete
 * it.
 */
function notFromManifest(object: JsonObject, { namespace, name }: ObjectLocation): KubelingError {
  const qualified = namespace === undefined ? name : `${namespace}/${name}`;
  return new KubelingError(
    'API_INVALID',
    `Cannot use the ${object['kind']} ${qualified}: the API has an object of this name that does not come from a manifest`,
  );
}

function annotated(object: JsonObject, { namespace }: ObjectLocation, file: string): JsonObject {
  const metadata = object['metadata'] as JsonObject;
  const annotations = { ...(metadata['annotations'] as JsonObject | undefined), [manifestAnnotation]: file };
  return {
    ...object,
    metadata: { ...metadata, ...(namespace === undefined ? {} : { namespace }), annotations },
  };
}

/** The annotations that the volume controller sets. */
const bindingMark = 'pv.kubernetes.io/';

/**
 * The manifest with the server-set fields of the existing object, so that an unchanged manifest
 * causes no update.
 */
export function mergeServerFields(desired: JsonObject, before: StoredObject): JsonObject {
  const metadata = desired['metadata'] as JsonObject;
  const { finalizers, annotations = {} } = before.metadata;
  const marks = Object.entries(annotations).filter(([name]) => name.startsWith(bindingMark));
  const spec = desired['spec'] as JsonObject | undefined;
  return {
    ...desired,
    metadata: {
      ...(finalizers === undefined ? {} : { finalizers }),
      ...metadata,
      annotations: { ...Object.fromEntries(marks), ...(metadata['annotations'] as JsonObject | undefined) },
    },
    ...(spec === undefined
      ? {}
      : { spec: { ...spec, ...bindingOf(spec, (before['spec'] ?? {}) as JsonObject) } }),
  };
}

/**
 * Keeps the binding between a volume and a claim, unless the manifest names a different volume or
 * claim.
 */
function bindingOf(spec: JsonObject, before: JsonObject): JsonObject {
  const own = Object.entries(before).filter(
    ([name, value]) =>
      (name === 'claimRef' && isSameClaim(spec[name], value)) ||
      ((name === 'volumeName' || name === 'storageClassName') && spec[name] === undefined),
  );
  return Object.fromEntries(own);
}

function isSameClaim(desired: unknown, bound: unknown): boolean {
  if (desired === undefined) return true;
  const [one, other] = [desired as JsonObject, bound as JsonObject];
  return one['name'] === other['name'] && one['namespace'] === other['namespace'];
}
