import type { JsonObject } from '../../api/index.ts';
import { dnsLabel, labelValue, qualifiedName, type TextRule } from '../../pods/validation/index.ts';
import type { FieldCause, StoredMeta, StoredObject, WriteContext } from '../api/index.ts';
import { invalid, tooLong } from './causes.ts';

const mostAnnotationBytes = 256 * 1024;

type Validate = (object: StoredObject, write: WriteContext) => readonly FieldCause[];

/** Validates the metadata of every object, then the rules of its kind. */
export function validatorFor(name: TextRule, ...more: readonly Validate[]): Validate {
  return (object, write) => [
    ...metadataCauses(object.metadata, write.before?.metadata, name),
    ...more.flatMap((validate) => validate(object, write)),
  ];
}

function metadataCauses(
  meta: StoredMeta,
  before: StoredMeta | undefined,
  name: TextRule,
): readonly FieldCause[] {
  return [
    ...(before === undefined ? nameCauses(meta, name) : []),
    ...labelCauses(meta.labels ?? {}, 'metadata.labels'),
    ...annotationCauses(meta.annotations ?? {}),
    ...ownerReferenceCauses(meta.ownerReferences ?? []),
    ...finalizerCauses(meta.finalizers ?? [], 'metadata.finalizers'),
  ];
}

function nameCauses(meta: StoredMeta, rule: TextRule): readonly FieldCause[] {
  const { name, namespace } = meta;
  const { generateName = '' } = meta as { readonly generateName?: string };
  return [
    // generateName may end with a dash.
    ...(generateName === '' ? [] : rule(generateName.replace(/-$/, 'a'))).map((message) =>
      invalid('metadata.generateName', generateName, message),
    ),
    ...rule(name).map((message) => invalid('metadata.name', name, message)),
    ...(namespace === undefined ? [] : dnsLabel(namespace)).map((message) =>
      invalid('metadata.namespace', namespace, message),
    ),
  ];
}

const plainFinalizers = ['kubernetes', 'orphan', 'foregroundDeletion'];

/** Finalizers must be qualified names, except for a few standard ones. */
export function finalizerCauses(
  finalizers: readonly string[],
  field: string,
  which: 'numbered' | 'together' = 'numbered',
): readonly FieldCause[] {
  return [
    ...finalizers.flatMap((name) => qualifiedName(name).map((message) => invalid(field, name, message))),
    ...finalizers.flatMap((name, index) =>
      name.includes('/') || plainFinalizers.includes(name)
        ? []
        : [
            invalid(
              which === 'numbered' ? `${field}[${index}]` : field,
              name,
              'name is neither a standard finalizer name nor is it fully qualified',
            ),
          ],
    ),
  ];
}

export function labelCauses(labels: Readonly<Record<string, string>>, field: string): readonly FieldCause[] {
  return Object.entries(labels).flatMap(([key, value]) => [
    ...qualifiedName(key).map((message) => invalid(field, key, message)),
    ...labelValue(value).map((message) => invalid(field, value, message)),
  ]);
}

function annotationCauses(annotations: Readonly<Record<string, string>>): readonly FieldCause[] {
  const field = 'metadata.annotations';
  const entries = Object.entries(annotations);
  const bytes = entries.reduce(
    (sum, pair) => sum + pair.reduce((n, text) => n + Buffer.byteLength(text), 0),
    0,
  );
  return [
    ...entries.flatMap(([key]) =>
      qualifiedName(key.toLowerCase()).map((message) => invalid(field, key, message)),
    ),
    ...(bytes > mostAnnotationBytes ? [tooLong(field, mostAnnotationBytes)] : []),
  ];
}

function ownerReferenceCauses(owners: readonly JsonObject[]): readonly FieldCause[] {
  const field = 'metadata.ownerReferences';
  const empty = owners.flatMap((owner) => [
    ...((owner['apiVersion'] ?? '') === ''
      ? [invalid(`${field}.apiVersion`, '', 'version must not be empty')]
      : []),
    ...['kind', 'name', 'uid']
      .filter((part) => (owner[part] ?? '') === '')
      .map((part) => invalid(`${field}.${part}`, '', 'must not be empty')),
    ...(owner['apiVersion'] === 'v1' && owner['kind'] === 'Event'
      ? [invalid(field, owner, '/v1, Kind=Event is disallowed from being an owner')]
      : []),
  ]);
  const [first, ...others] = owners
    .filter(({ controller }) => controller === true)
    .map(({ kind, name }) => `${kind}/${name}`);
  const second = others.map((other) =>
    invalid(
      field,
      owners,
      `Only one reference can have Controller set to true. Found "true" in references for ${first} and ${other}`,
    ),
  );
  return [...empty, ...second];
}

/** A copy of the object with the given fields; undefined removes a field. */
export function withFields<T extends JsonObject>(object: T, fields: JsonObject): T {
  const merged = { ...object, ...fields };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== undefined)) as T;
}
