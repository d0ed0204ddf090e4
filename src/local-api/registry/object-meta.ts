import { apiVersionOf, isJsonObject, type JsonObject } from '../../api/index.ts';
import { type Random, randomHex, randomInt } from '../../lib/index.ts';
import type { ApiRequest, FieldCause } from '../api/api-types.ts';
import { badRequest, invalid } from '../api/status-errors.ts';
import type { StoredMeta, StoredObject } from '../api/stored-object.ts';

/** Fields of the metadata that only the server writes. */
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

/** What nobody keeps, whoever sends it. */
const droppedFields = ['managedFields', 'selfLink'];

export function metadataOf(object: JsonObject): JsonObject {
  const meta = object['metadata'] ?? {};
  if (!isJsonObject(meta)) throw badRequest('metadata must be an object');
  return meta;
}

/** The metadata after a change: what is the caller's from the wanted object, the rest as it was. */
export function updatedMetadata(before: StoredMeta, wanted: JsonObject): StoredMeta {
  const own = serverFields.flatMap((name) => (before[name] === undefined ? [] : [[name, before[name]]]));
  return Object.fromEntries([...own, ...callerFields(wanted)]) as StoredMeta;
}

function callerFields(meta: JsonObject): readonly (readonly [string, unknown])[] {
  const skipped: readonly string[] = [...serverFields, ...droppedFields];
  return Object.entries(meta).filter(([name, value]) => !skipped.includes(name) && !isEmpty(value));
}

/** Empty maps and lists of metadata are as good as none. */
function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

export interface NewObjectFields {
  readonly name: string;
  readonly uid: string;
  readonly creationTimestamp: string;
  readonly generation: number | undefined;
}

/** A new object with all that the server itself gives to it. */
export function newStoredObject(
  request: ApiRequest,
  wanted: JsonObject,
  birth: NewObjectFields,
): StoredObject {
  const { resource } = request;
  const meta = metadataOf(wanted);
  const { name, uid, creationTimestamp, generation } = birth;
  const { generateName } = meta;
  return {
    ...wanted,
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

/** Letters and digits that cannot be mistaken for each other or make words. */
const suffixLetters = 'bcdfghjklmnpqrstvwxz2456789';
const suffixLength = 5;
const maxPrefixLength = 63 - suffixLength;
const maxTries = 8;

/** The name of a new object: its own, or one that is not taken, as far as a few tries can find one. */
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

/** Only a deletion deletes. */
export function deletionTimestampCauses(before: StoredMeta, wanted: JsonObject): readonly FieldCause[] {
  const { deletionTimestamp } = wanted;
  if (before.deletionTimestamp !== undefined || (deletionTimestamp ?? '') === '') return [];
  const message = `Invalid value: ${JSON.stringify(deletionTimestamp)}: field is immutable`;
  return [{ reason: 'FieldValueInvalid', field: 'metadata.deletionTimestamp', message }];
}

/** What is being deleted may be held by those who hold it, but by nobody new. */
export function newFinalizerCauses(before: StoredMeta, after: StoredMeta): readonly FieldCause[] {
  if (before.deletionTimestamp === undefined) return [];
  const added = (after.finalizers ?? []).filter((name) => !(before.finalizers ?? []).includes(name));
  if (added.length === 0) return [];
  const list = added.toSorted().map((name) => JSON.stringify(name));
  const why = `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list.join(', ')}}`;
  return [{ reason: 'FieldValueForbidden', field: 'metadata.finalizers', message: `Forbidden: ${why}` }];
}
