import { apiVersionOf, isJsonObject, type JsonObject } from '../../api/index.ts';
import { type Random, randomHex, randomInt } from '../../lib/index.ts';
import type { ApiRequest, FieldCause } from '../api/api-types.ts';
import { badRequest, invalid } from '../api/status-errors.ts';
import type { StoredMeta, StoredObject } from '../api/stored-object.ts';

/** Fields of the metadata that only the server writes. */
const serversOwn = [
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
const neverKept = ['managedFields', 'selfLink'];

export function metaOf(object: JsonObject): JsonObject {
  const meta = object['metadata'] ?? {};
  if (!isJsonObject(meta)) throw badRequest('metadata must be an object');
  return meta;
}

/** The metadata after a change: what is the caller's from the wanted object, the rest as it was. */
export function changedMeta(before: StoredMeta, wanted: JsonObject): StoredMeta {
  const own = serversOwn.flatMap((name) => (before[name] === undefined ? [] : [[name, before[name]]]));
  return Object.fromEntries([...own, ...callersOwn(wanted)]) as StoredMeta;
}

function callersOwn(meta: JsonObject): readonly (readonly [string, unknown])[] {
  const skipped: readonly string[] = [...serversOwn, ...neverKept];
  return Object.entries(meta).filter(([name, value]) => !skipped.includes(name) && !isEmpty(value));
}

/** Empty maps and lists of metadata are as good as none. */
function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

export interface Birth {
  readonly name: string;
  readonly uid: string;
  readonly creationTimestamp: string;
  readonly generation: number | undefined;
}

/** A new object with all that the server itself gives to it. */
export function born(request: ApiRequest, wanted: JsonObject, birth: Birth): StoredObject {
  const { resource } = request;
  const meta = metaOf(wanted);
  const { name, uid, creationTimestamp, generation } = birth;
  const { generateName } = meta;
  return {
    ...wanted,
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: {
      ...Object.fromEntries(callersOwn(meta)),
      ...(typeof generateName === 'string' && generateName !== '' ? { generateName } : {}),
      ...homeOf(request, meta),
      ...(generation === undefined ? {} : { generation }),
      name,
      uid,
      resourceVersion: '',
      creationTimestamp,
    },
  };
}

function homeOf({ resource, namespace }: ApiRequest, meta: JsonObject): { namespace?: string } {
  const own = meta['namespace'] ?? '';
  if (resource.scope === 'cluster') return {};
  if (namespace === undefined) throw badRequest('an empty namespace may not be set during creation');
  if (own !== '' && own !== namespace) throw otherNamespace();
  return { namespace };
}

export function otherNamespace(): Error {
  return badRequest('the namespace of the provided object does not match the namespace sent on the request');
}

/** Letters and digits that cannot be mistaken for each other or make words. */
const suffixLetters = 'bcdfghjklmnpqrstvwxz2456789';
const suffixLength = 5;
const longestBase = 63 - suffixLength;
const mostTries = 8;

/** The name of a new object: its own, or one that is not taken, as far as a few tries can find one. */
export function nameFor(
  request: ApiRequest,
  meta: JsonObject,
  random: Random,
  isTaken: (name: string) => boolean,
): string {
  const { name, generateName } = meta;
  if (typeof name === 'string' && name !== '') return name;
  if (typeof generateName !== 'string' || generateName === '')
    throw invalid({ resource: request.resource }, [nameRequired]);
  let made = '';
  for (let tries = 0; tries < mostTries; tries++) {
    made = generateName.slice(0, longestBase) + suffix(random);
    if (!isTaken(made)) break;
  }
  return made;
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
export function markedByHand(before: StoredMeta, wanted: JsonObject): readonly FieldCause[] {
  const { deletionTimestamp } = wanted;
  if (before.deletionTimestamp !== undefined || (deletionTimestamp ?? '') === '') return [];
  const message = `Invalid value: ${JSON.stringify(deletionTimestamp)}: field is immutable`;
  return [{ reason: 'FieldValueInvalid', field: 'metadata.deletionTimestamp', message }];
}

/** What is being deleted may be held by those who hold it, but by nobody new. */
export function newHolders(before: StoredMeta, after: StoredMeta): readonly FieldCause[] {
  if (before.deletionTimestamp === undefined) return [];
  const added = (after.finalizers ?? []).filter((name) => !(before.finalizers ?? []).includes(name));
  if (added.length === 0) return [];
  const list = added.toSorted().map((name) => JSON.stringify(name));
  const why = `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list.join(', ')}}`;
  return [{ reason: 'FieldValueForbidden', field: 'metadata.finalizers', message: `Forbidden: ${why}` }];
}
