import { type ApiResource, apiResources, type JsonObject } from '../api/index.ts';
import type { KindTable } from '../kinds/index.ts';
import { KubelingError } from '../lib/index.ts';
import type { StoredObject } from './api/index.ts';
import {
  type ApiCall,
  type Catalogue,
  manifestAnnotation,
  type ResourceVerb,
  StatusError,
  type World,
} from './api/index.ts';
import { BodyDecoder } from './http/body/decode-body.ts';
import { serverUser } from './kinds/resources.ts';

/** Keeps objects that are written in files rather than sent by anybody. */
export interface ManifestKeeper {
  /** Makes the object as it is written, or makes it so; throws when it is refused. */
  apply(object: JsonObject, file: string): void;
  /** The names of all that came from files. */
  applied(): readonly string[];
  remove(name: string): void;
  /** Resolves when more can be kept: to be awaited before each change, as changes are made faster than they are written. */
  whenRoom(signal: AbortSignal): Promise<void>;
  /** Throws when the object does not say what it is called. */
  nameOf(object: JsonObject): string;
}

const kept: Readonly<Record<string, ApiResource>> = {
  ConfigMap: apiResources.configMaps,
  Secret: apiResources.secrets,
  PersistentVolume: apiResources.persistentVolumes,
  PersistentVolumeClaim: apiResources.persistentVolumeClaims,
};

interface Place {
  readonly resource: ApiResource;
  readonly namespace: string | undefined;
  readonly name: string;
}

export function manifestKeeper(world: World, catalogue: Catalogue, table: KindTable): ManifestKeeper {
  const decoder = new BodyDecoder(table);
  const call = (verb: ResourceVerb, { resource, namespace, name }: Place, body?: JsonObject) =>
    world.carryOut({
      ...nobodysCall,
      verb,
      entry: catalogue.of(resource),
      namespace,
      name: verb === 'create' ? undefined : name,
      body,
    });
  return {
    apply(object, file) {
      const place = placeOf(object);
      const { resource, namespace, name } = place;
      // As strictly as kubectl has it: a word that is mistaken here would be missed by a pod later.
      const how = { expected: resource, validation: 'Strict', warn: () => {} } as const;
      const wanted = annotated(decoder.decodeWritten(object, how), place, file);
      const before = world.objects.get(resource, namespace, name);
      if (before === undefined) call('create', place, wanted);
      else if (before.metadata.annotations?.[manifestAnnotation] === undefined) throw notOurs(object, place);
      else if (before.metadata.deletionTimestamp === undefined)
        call('update', place, updateFrom(wanted, before));
    },
    applied: () =>
      Object.values(kept).flatMap((resource) =>
        world.objects
          .all(resource)
          .filter(({ metadata }) => metadata.annotations?.[manifestAnnotation] !== undefined)
          .map(({ metadata }) => nameOf({ resource, namespace: metadata.namespace, name: metadata.name })),
      ),
    nameOf: (object) => nameOf(placeOf(object)),
    whenRoom: (signal) => world.whenRoom(signal),
    remove(name) {
      const [plural, namespace = '', own = ''] = name.split('/');
      const resource = Object.values(kept).find((each) => each.plural === plural);
      if (resource === undefined) return;
      try {
        call('delete', { resource, namespace: namespace === '' ? undefined : namespace, name: own });
      } catch (error) {
        if (!(error instanceof StatusError) || error.status.code !== 404) throw error;
      }
    },
  };
}

const nobodysCall: Omit<ApiCall, 'verb' | 'entry' | 'namespace' | 'name' | 'body'> = {
  user: serverUser,
  subresource: undefined,
  query: new URLSearchParams(),
  patch: undefined,
  dryRun: false,
  warn: () => {},
};

function nameOf({ resource, namespace = '', name }: Place): string {
  return `${resource.plural}/${namespace}/${name}`;
}

function placeOf(object: JsonObject): Place {
  const kind = String(object['kind']);
  const resource = kept[kind];
  const { name, namespace = 'default' } = (object['metadata'] ?? {}) as { name?: string; namespace?: string };
  if (resource === undefined)
    throw new KubelingError(
      'API_INVALID',
      `Cannot use an object as its kind must be known: current value is ${kind}`,
    );
  if (typeof name !== 'string' || name === '')
    throw new KubelingError(
      'API_INVALID',
      `Cannot use a ${kind} as metadata.name must be a name: current value is ${JSON.stringify(name) ?? 'none'}`,
    );
  return { resource, name, namespace: resource.scope === 'cluster' ? undefined : String(namespace) };
}

/** Somebody made it by hand: it would change under them, and go with the file. */
function notOurs(object: JsonObject, { namespace, name }: Place): KubelingError {
  const whole = namespace === undefined ? name : `${namespace}/${name}`;
  return new KubelingError(
    'API_INVALID',
    `Cannot use the ${object['kind']} ${whole} as the API has one of this name that comes from no manifest`,
  );
}

function annotated(object: JsonObject, { namespace }: Place, file: string): JsonObject {
  const metadata = object['metadata'] as JsonObject;
  const annotations = { ...(metadata['annotations'] as JsonObject | undefined), [manifestAnnotation]: file };
  return {
    ...object,
    metadata: { ...metadata, ...(namespace === undefined ? {} : { namespace }), annotations },
  };
}

/** Marks that the binding of volumes leaves. */
const bindingMark = 'pv.kubernetes.io/';

/**
 * What a file says, with what the server itself has written into the object since: a file that is read again changes
 * nothing unless it says something else.
 */
export function updateFrom(wanted: JsonObject, before: StoredObject): JsonObject {
  const metadata = wanted['metadata'] as JsonObject;
  const { finalizers, annotations = {} } = before.metadata;
  const marks = Object.entries(annotations).filter(([name]) => name.startsWith(bindingMark));
  const spec = wanted['spec'] as JsonObject | undefined;
  return {
    ...wanted,
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

/** Who is bound to whom, as long as the file does not name another one. */
function bindingOf(spec: JsonObject, before: JsonObject): JsonObject {
  const own = Object.entries(before).filter(
    ([name, value]) =>
      (name === 'claimRef' && isSameClaim(spec[name], value)) ||
      ((name === 'volumeName' || name === 'storageClassName') && spec[name] === undefined),
  );
  return Object.fromEntries(own);
}

function isSameClaim(wanted: unknown, bound: unknown): boolean {
  if (wanted === undefined) return true;
  const [one, other] = [wanted as JsonObject, bound as JsonObject];
  return one['name'] === other['name'] && one['namespace'] === other['namespace'];
}
