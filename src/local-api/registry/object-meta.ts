import { apiVersionOf, isJsonObject, type JsonObject } from '../../api/index.ts';
import { type Random, randomHex, randomInt } from '../../lib/index.ts';
import type { ApiRequest, FieldCause } from '../api/api-types.ts';
import { badRequest, invalid } from '../api/status-errors.ts';
import type { StoredMeta, StoredObject } from '../api/stored-object.ts';

/** Metadata fields that only the server sets. */
const serverFields = [
  'name',
  'namespace',
  'generateName',
  'uid',
  'resourceVersion',
  'creationTimestamp',
  'generation',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
] as const;

/** Metadata fields of a request that are dropped. */
const droppedFields = ['managedFields', 'selfLink'];

export function metadataOf(object: JsonObject): JsonObject {
  const meta = object['metadata'] ?? {};
  if (!isJsonObject(meta)) throw badRequest('metadata must be an object');
  return meta;
}

/** The updated metadata: client fields from the requested object, server fields unchanged. */
export function updatedMetadata(before: StoredMeta, desired: JsonObject): StoredMeta {
  const own = serverFields.flatMap((name) => (before[name] === undefined ? [] : [[name, before[name]]]));
  return Object.fromEntries([...own, ...callerFields(desired)]) as StoredMeta;
}

function callerFields(meta: JsonObject): readonly (readonly [string, unknown])[] {
  const skipped: readonly string[] = [...serverFields, ...droppedFields];
  return Object.entries(meta).filter(([name, value]) => !skipped.includes(name) && !isEmpty(value));
}

/** Empty maps and lists in metadata are equal to unset. */
function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

export interface NewObjectFields {
  readonly name: string;
  readonly uid: string;
  readonly creationTimestamp: string;
  readonly generation: number | undefined;
}

/** A new object with the server-set metadata. */
export function newStoredObject(
  request: ApiRequest,
  desired: JsonObject,
  fields: NewObjectFields,
): StoredObject {
  const { resource } = request;
  const meta = metadataOf(desired);
  const { name, uid, creationTimestamp, generation } = fields;
  const { generateName } = meta;
  return {
    ...desired,
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: {
      ...Object.fromEntries(callerFields(meta)),
      ...(typeof generateName === 'string' && generateName !== '' ? { generateName } : {}),
      ...namespaceFields(request, meta),
      ...(generation === undefined ? {} : { generation }),
      name,
      uid,
      resourceVersion: '',
      creationTimestamp,
    },
  };
}

function namespaceFields({ resource, namespace }: ApiRequest, meta: JsonObject): { namespace?: string } {
  const own = meta['namespace'] ?? '';
  if (resource.scope === 'cluster') return {};
  if (namespace === undefined) throw badRequest('an empty namespace may not be set during creation');
  if (own !== '' && own !== namespace) throw namespaceMismatch();
  return { namespace };
}

export function namespaceMismatch(): Error {
  return badRequest('the namespace of the provided object does not match the namespace sent on the request');
}

/** The alphabet of generated names, without vowels and characters that look alike. */
const suffixLetters = 'bcdfghjklmnpqrstvwxz2456789';
const suffixLength = 5;
const maxPrefixLength = 63 - suffixLength;
const maxTries = 8;

/**
 * The name of a new object: the given name, or a free name generated from generateName with a
 * limited number of tries.
 */
export function chooseName(
  request: ApiRequest,
  meta: JsonObject,
  random: Random,
  exists: (name: string) => boolean,
): string {
  const { name, generateName } = meta;
  if (typeof name === 'string' && name !== '') return name;
  if (typeof generateName !== 'string' || generateName === '')
    throw invalid({ resource: request.resource }, [nameRequired]);
  let generated = '';
  for (let tries = 0; tries < maxTries; tries++) {
    generated = generateName.slice(0, maxPrefixLength) + suffix(random);
    if (!exists(generated)) break;
  }
  return generated;
}

const nameRequired: FieldCause = {
  reason: 'FieldValueRequired',
  field: 'metadata.name',
  message: 'Required value: name or generateName is required',
};

function suffix(random: Random): string {
  const letter = () => suffixLetters[randomInt(random, suffixLetters.length)];
  return Array.from({ length: suffixLength }, letter).join('');
}

export function newUid(random: Random): string {
  const hex = randomHex(random, 31);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(12, 15)}`,
    `a${hex.slice(15, 18)}`,
    hex.slice(18, 30),
  ].join('-');
}

/** deletionTimestamp can only be set by a delete. */
export function deletionTimestampCauses(before: StoredMeta, desired: JsonObject): readonly FieldCause[] {
  const { deletionTimestamp } = desired;
  if (before.deletionTimestamp !== undefined || (deletionTimestamp ?? '') === '') return [];
  const message = `Invalid value: ${JSON.stringify(deletionTimestamp)}: field is immutable`;
  return [{ reason: 'FieldValueInvalid', field: 'metadata.deletionTimestamp', message }];
}

/** No finalizers can be added to an object that is being deleted. */
export function newFinalizerCauses(before: StoredMeta, after: StoredMeta): readonly FieldCause[] {
  if (before.deletionTimestamp === undefined) return [];
  const known = new Set(before.finalizers ?? []);
  const added = (after.finalizers ?? []).filter((name) => !known.has(name));
  if (added.length === 0) return [];
  const list = added.toSorted().map((name) => JSON.stringify(name));
  const why = `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list.join(', ')}}`;
  return [{ reason: 'FieldValueForbidden', field: 'metadata.finalizers', message: `Forbidden: ${why}` }];
}
