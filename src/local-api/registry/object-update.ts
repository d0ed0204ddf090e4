import {
  applyPatch,
  isJsonObject,
  type JsonObject,
  type Patch,
  PatchSchema,
  sameValue,
} from '../../api/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { ResourceStrategy } from '../api/api-types.ts';
import { StatusError } from '../api/api-types.ts';
import { invalidFields } from '../api/status-errors.ts';
import type { StoredMeta, StoredObject } from '../api/stored-object.ts';
import { metadataOf, updatedMetadata } from './object-meta.ts';

type SubresourceUpdate = (before: StoredObject, wanted: JsonObject) => StoredObject;

/** The default effect of a write to each subresource. */
const defaultSubresourceUpdates: Readonly<Record<string, SubresourceUpdate>> = {
  status: (before, wanted) => withField(before, 'status', wanted['status']),
  approval: (before, wanted) => {
    const { conditions } = objectAt(wanted, 'status');
    return { ...before, status: withField(before.status ?? {}, 'conditions', conditions) };
  },
  finalize: (before, wanted) => ({
    ...before,
    spec: withField(before.spec ?? {}, 'finalizers', objectAt(wanted, 'spec')['finalizers']),
  }),
  ephemeralcontainers: (before, wanted) => ({
    ...before,
    spec: withField(
      before.spec ?? {},
      'ephemeralContainers',
      objectAt(wanted, 'spec')['ephemeralContainers'],
    ),
  }),
  resize: (before, wanted) => ({ ...before, spec: resized(before.spec ?? {}, objectAt(wanted, 'spec')) }),
};

/** Pod subresources that keep the metadata unchanged. */
const metadataPreserving: readonly string[] = ['ephemeralcontainers', 'resize'];

/** The object after an update of it or of a subresource. */
export function updatedObject(
  rules: ResourceStrategy,
  before: StoredObject,
  wanted: JsonObject,
  subresource: string | undefined,
): StoredObject {
  const metadata = metadataPreserving.includes(subresource ?? '')
    ? before.metadata
    : updatedMetadata(before.metadata, metadataOf(wanted));
  const next =
    subresource === undefined
      ? mainUpdate(rules, before, wanted)
      : subresourceUpdate(rules, before, wanted, subresource);
  const named = { ...next, metadata: subresource === 'status' ? withOwnersOf(before, metadata) : metadata };
  return rules.generation === 'counted' && subresource !== 'status'
    ? withNextGeneration(before, named)
    : named;
}

/** Whether the subresource can be written. */
export function isWritableSubresource(
  { subresourceUpdates }: ResourceStrategy,
  subresource: string,
): boolean {
  return (
    Object.hasOwn(subresourceUpdates ?? {}, subresource) ||
    Object.hasOwn(defaultSubresourceUpdates, subresource)
  );
}

function mainUpdate({ status }: ResourceStrategy, before: StoredObject, wanted: JsonObject): StoredObject {
  const { apiVersion, kind, metadata } = before;
  const next = status === 'separate' ? withField(wanted, 'status', before.status) : wanted;
  return { ...next, apiVersion, kind, metadata };
}

function subresourceUpdate(
  { subresourceUpdates = {} }: ResourceStrategy,
  before: StoredObject,
  wanted: JsonObject,
  name: string,
): StoredObject {
  const own = Object.hasOwn(subresourceUpdates, name)
    ? subresourceUpdates[name]
    : defaultSubresourceUpdates[name];
  return own === undefined ? before : own(before, wanted);
}

/** A pod status update does not change owner references. */
function withOwnersOf(
  { kind, metadata: { ownerReferences } }: StoredObject,
  metadata: StoredMeta,
): StoredMeta {
  return kind === 'Pod' ? withField(metadata, 'ownerReferences', ownerReferences) : metadata;
}

/** Takes only resources and resize policies of containers. */
function resized(before: JsonObject, wanted: JsonObject): JsonObject {
  const lists = ['containers', 'initContainers'].flatMap((name) =>
    before[name] === undefined
      ? []
      : [[name, resizedList(listAt(before, name), listAt(wanted, name))] as const],
  );
  const own = wanted['resources'] === undefined ? before : { ...before, resources: wanted['resources'] };
  return { ...own, ...Object.fromEntries(lists) };
}

function resizedList(before: readonly JsonObject[], wanted: readonly JsonObject[]): readonly JsonObject[] {
  return before.map((container) => {
    const next = wanted.find(({ name }) => name === container['name']);
    if (next === undefined) return container;
    return withField(
      withField(container, 'resources', next['resources']),
      'resizePolicy',
      next['resizePolicy'],
    );
  });
}

function withField<T extends JsonObject>(object: T, name: string, value: unknown): T {
  const rest = Object.entries(object).filter(([key]) => key !== name);
  return Object.fromEntries(value === undefined ? rest : [...rest, [name, value]]) as T;
}

function objectAt(object: JsonObject, name: string): JsonObject {
  const value = object[name];
  return isJsonObject(value) ? value : {};
}

function listAt(object: JsonObject, name: string): readonly JsonObject[] {
  const value = object[name];
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function withNextGeneration(before: StoredObject, after: StoredObject): StoredObject {
  if (sameValue(before.spec, after.spec)) return after;
  const generation = (before.metadata.generation ?? 0) + 1;
  return { ...after, metadata: { ...after.metadata, generation } };
}

/** Applies patches to stored objects. */
export class PatchApplier {
  readonly #schema = new PatchSchema();

  /** Returns the patched object; throws a StatusError for an invalid patch. */
  apply(kind: string, before: StoredObject, patch: Patch): JsonObject {
    const patched = this.#apply(kind, before, patch);
    const isOther = patched['kind'] !== before.kind || patched['apiVersion'] !== before.apiVersion;
    if (isOther) throw kindChanged(before.kind);
    return patched;
  }

  #apply(kind: string, before: StoredObject, patch: Patch): JsonObject {
    try {
      return applyPatch(this.#schema, kind, before, patch);
    } catch (error) {
      throw toStatusError(error);
    }
  }
}

function kindChanged(kind: string): StatusError {
  const message = `Invalid value: a patch must not change the kind of the object: ${kind}`;
  return invalidFields({ kind: '', group: '', name: '' }, [
    { reason: 'FieldValueInvalid', field: 'patch', message },
  ]);
}

const prefix = 'Cannot apply a patch: ';

function toStatusError(error: unknown): unknown {
  if (!(error instanceof KubelingError) || typeof error.details['status'] !== 'number') return error;
  const { status: code, reason } = error.details;
  const message = error.message.startsWith(prefix) ? error.message.slice(prefix.length) : error.message;
  return new StatusError({ code: Number(code), reason: String(reason ?? ''), message });
}
