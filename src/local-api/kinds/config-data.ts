import { type JsonObject, sameValue } from '../../api/index.ts';
import { configKey, dnsSubdomain } from '../../pods/validation/index.ts';
import type { FieldCause, ResourceStrategy, StoredObject, WriteContext } from '../api/index.ts';
import { forbiddenField, immutable, invalid, required, tooLong } from '../validation/causes.ts';
import { validatorFor, withFields } from '../validation/metadata.ts';

type Texts = Readonly<Record<string, string>>;

const maxBytes = 1024 * 1024;
const redacted = '<secret contents redacted>';

export const configMapStrategy: ResourceStrategy = {
  validate: validatorFor(dnsSubdomain, immutabilityCauses, configMapCauses),
};

export const secretStrategy: ResourceStrategy = {
  prepare: preparedSecret,
  validate: validatorFor(dnsSubdomain, typeChange, immutabilityCauses, secretCauses),
};

function textsOf(object: StoredObject, field: string): Texts {
  return (object[field] ?? {}) as Texts;
}

/** If `immutable` is set, neither the data nor `immutable` itself may change. */
function immutabilityCauses(object: StoredObject, { before }: WriteContext): readonly FieldCause[] {
  if (before?.['immutable'] !== true) return [];
  const changed = ['data', 'binaryData'].filter(
    (field) => !sameValue(before[field] ?? {}, object[field] ?? {}),
  );
  const fields = object['immutable'] === true ? changed : ['immutable', ...changed];
  return fields.map((field) => forbiddenField(field, 'field is immutable when `immutable` is set'));
}

function keyCauses(field: string, texts: Texts): readonly FieldCause[] {
  return Object.keys(texts).flatMap((key) =>
    configKey(key).map((message) => invalid(`${field}[${key}]`, key, message)),
  );
}

function configMapCauses(object: StoredObject): readonly FieldCause[] {
  const data = textsOf(object, 'data');
  const binary = textsOf(object, 'binaryData');
  const both = Object.keys(data).filter((key) => Object.hasOwn(binary, key));
  const bytes = plainBytes(data) + decodedBytes(binary);
  return [
    ...keyCauses('data', data),
    ...both.map((key) => invalid(`data[${key}]`, key, 'duplicate of key present in binaryData')),
    ...keyCauses('binaryData', binary),
    ...(bytes > maxBytes ? [tooLong('[]', maxBytes)] : []),
  ];
}

function plainBytes(texts: Texts): number {
  return Object.values(texts).reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

function decodedBytes(texts: Texts): number {
  return Object.values(texts).reduce((sum, text) => sum + Buffer.byteLength(text, 'base64'), 0);
}

/** stringData overrides data. */
function preparedSecret(object: StoredObject): StoredObject {
  const { stringData: _, ...rest } = object;
  const type = object['type'] === undefined || object['type'] === '' ? 'Opaque' : object['type'];
  const encoded = Object.entries(textsOf(object, 'stringData')).map(([key, text]) => [
    key,
    Buffer.from(text).toString('base64'),
  ]);
  const data = { ...textsOf(object, 'data'), ...Object.fromEntries(encoded) };
  return withFields(rest as StoredObject, { type, data: Object.keys(data).length > 0 ? data : undefined });
}

function typeChange(object: StoredObject, { before }: WriteContext): readonly FieldCause[] {
  return before === undefined ? [] : immutable('type', before['type'], object['type']);
}

function secretCauses(object: StoredObject): readonly FieldCause[] {
  const data = textsOf(object, 'data');
  return [
    ...keyCauses('data', data),
    ...(decodedBytes(data) > maxBytes ? [tooLong('data', maxBytes)] : []),
    ...contentCauses(object, data),
  ];
}

/** The required data keys of each secret type. */
function contentCauses(object: StoredObject, data: Texts): readonly FieldCause[] {
  switch (object['type']) {
    case 'kubernetes.io/service-account-token':
      return accountNameCauses(object);
    case 'kubernetes.io/dockercfg':
      return jsonCauses(data, '.dockercfg');
    case 'kubernetes.io/dockerconfigjson':
      return jsonCauses(data, '.dockerconfigjson');
    case 'kubernetes.io/basic-auth':
      return ['username', 'password'].some((key) => Object.hasOwn(data, key))
        ? []
        : missing(data, ['username', 'password']);
    case 'kubernetes.io/ssh-auth':
      return (data['ssh-privatekey'] ?? '') === '' ? [required('data[ssh-privatekey]')] : [];
    case 'kubernetes.io/tls':
      return missing(data, ['tls.crt', 'tls.key']);
    default:
      return [];
  }
}

function missing(data: Texts, keys: readonly string[]): readonly FieldCause[] {
  return keys.filter((key) => !Object.hasOwn(data, key)).map((key) => required(`data[${key}]`));
}

function accountNameCauses({ metadata }: StoredObject): readonly FieldCause[] {
  const annotation = 'kubernetes.io/service-account.name';
  const name = metadata.annotations?.[annotation] ?? '';
  return name === '' ? [required(`metadata.annotations[${annotation}]`)] : [];
}

function jsonCauses(data: Texts, key: string): readonly FieldCause[] {
  const text = data[key];
  if (text === undefined) return [required(`data[${key}]`)];
  const plain = Buffer.from(text, 'base64').toString();
  return isJsonObject(plain) ? [] : [invalid(`data[${key}]`, redacted, jsonError(plain))];
}

function jsonError(text: string): string {
  const [first] = text.trimStart();
  if (first === undefined) return 'unexpected end of JSON input';
  return /[[{"\dtfn-]/.test(first)
    ? 'must be a JSON object'
    : `invalid character '${first}' looking for beginning of value`;
}

function isJsonObject(text: string): boolean {
  try {
    const value = JSON.parse(text) as JsonObject | null;
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
