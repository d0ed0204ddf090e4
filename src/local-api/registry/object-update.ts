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

type SubresourceUpdate = (before: StoredObject, desired: JsonObject) => StoredObject;

/**
 * The fields that a write to each subresource changes, unless the strategy of the resource defines
 * them.
 */
const defaultSubresourceUpdates: Readonly<Record<string, SubresourceUpdate>> = {
  status: (before, desired) => withField(before, 'status', desired['status']),
  approval: (before, desired) => {
    const { conditions } = objectAt(desired, 'status');
    return { ...before, status: withField(before.status ?? {}, 'conditions', conditions) };
  },
  finalize: (before, desired) => ({
    ...before,
    spec: withField(before.spec ?? {}, 'finalizers', objectAt(desired, 'spec')['finalizers']),
  }),
  ephemeralcontainers: (before, desired) => ({
    ...before,
    spec: withField(
      before.spec ?? {},
      'ephemeralContainers',
      objectAt(desired, 'spec')['ephemeralContainers'],
    ),
  }),
  resize: (before, desired) => ({ ...before, spec: resized(before.spec ?? {}, objectAt(desired, 'spec')) }),
};

/** Pod subresources that keep the metadata unchanged. */
const metadataPreserving: readonly string[] = ['ephemeralcontainers', 'resize'];

/** The object after an update of the object itself or of a subresource. */
export function updatedObject(
  rules: ResourceStrategy,
  before: StoredObject,
  desired: JsonObject,
  subresource: string | undefined,
): StoredObject {
  const metadata = metadataPreserving.includes(subresource ?? '')
    ? before.metadata
    : updatedMetadata(before.metadata, metadataOf(desired));
  const next =
    subresource === undefined
      ? mainUpdate(rules, before, desired)
      : subresourceUpdate(rules, before, desired, subresource);
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

function mainUpdate({ status }: ResourceStrategy, before: StoredObject, desired: JsonObject): StoredObject {
  const { apiVersion, kind, metadata } = before;
  const next = status === 'separate' ? withField(desired, 'status', before.status) : desired;
  return { ...next, apiVersion, kind, metadata };
}

function subresourceUpdate(
  { subresourceUpdates = {} }: ResourceStrategy,
  before: StoredObject,
  desired: JsonObject,
  name: string,
): StoredObject {
  const own = Object.hasOwn(subresourceUpdates, name)
    ? subresourceUpdates[name]
    : defaultSubresourceUpdates[name];
  return own === undefined ? before : own(before, desired);
}

/** A pod status update does not change owner references. */
function withOwnersOf(
  { kind, metadata: { ownerReferences } }: StoredObject,
  metadata: StoredMeta,
): StoredMeta {
  return kind === 'Pod' ? withField(metadata, 'ownerReferences', ownerReferences) : metadata;
}

/** A resize takes only resources and resize policies of containers from the request. */
function resized(before: JsonObject, desired: JsonObject): JsonObject {
  const lists = ['containers', 'initContainers'].flatMap((name) =>
    before[name] === undefined
      ? []
      : [[name, resizedList(listAt(before, name), listAt(desired, name))] as const],
  );
  const own = desired['resources'] === undefined ? before : { ...before, resources: desired['resources'] };
  return { ...own, ...Object.fromEntries(lists) };
}

function resizedList(before: readonly JsonObject[], desired: readonly JsonObject[]): readonly JsonObject[] {
  return before.map((container) => {
    const next = desired.find(({ name }) => name === container['name']);
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
