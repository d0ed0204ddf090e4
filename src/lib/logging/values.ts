import { describeError } from '../errors.ts';
import { isSecretName, redacted, redactText } from './redact.ts';

/** A value in the form in which it is logged: short, without secrets and cycles. */
export type Plain = string | number | boolean | null | readonly Plain[] | { readonly [key: string]: Plain };
export type PlainFields = { readonly [key: string]: Plain };
export type LogFields = Readonly<Record<string, unknown>>;

const maxText = 8192;
const maxDepth = 6;
const maxItems = 64;
/**
 * The maximum number of values in one record, so that a wide and deep value cannot block the node.
 */
const maxValues = 512;
const maxRecordText = 65_536;
const maxKey = 256;

/**
 * The state of the traversal: the enclosing objects of the current value, and how many values and
 * how much text may follow.
 */
interface Walk {
  readonly around: object[];
  left: number;
  text: number;
}

/** Converts log fields to plain values; undefined fields are omitted. Never throws. */
export function plainFields(fields: LogFields): PlainFields {
  const walk: Walk = { around: [], left: maxValues, text: maxRecordText };
  try {
    return plainRecord(fields, walk);
  } catch {
    return { fields: '<unreadable>' };
  }
}

/** Truncates a log message and removes secrets. Never throws. */
export function plainText(text: string): string {
  const cut = text.length <= maxText ? text : `${text.slice(0, maxText)}… (${text.length - maxText} more)`;
  return redactText(cut);
}

function walkedText(text: string, walk: Walk): string {
  if (walk.text <= 0) return '<more>';
  walk.text -= Math.min(text.length, maxText);
  return plainText(text);
}

function plainValue(value: unknown, walk: Walk): Plain {
  if (walk.left-- <= 0) return '<more>';
  switch (typeof value) {
    case 'string':
      return walkedText(value, walk);
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'boolean':
      return value;
    case 'undefined':
      return null;
    case 'object':
      return value === null ? null : plainObject(value, walk);
    case 'function':
      return '<function>';
    default:
      return walkedText(String(value), walk);
  }
}

/** Getters and proxies may throw in this function; the value is then logged as unreadable. */
function plainObject(value: object, walk: Walk): Plain {
  try {
    if (walk.around.includes(value)) return '<circular>';
    if (walk.around.length >= maxDepth) return Array.isArray(value) ? '<list>' : '<object>';
    walk.around.push(value);
    const plain = plainInside(value, walk);
    walk.around.pop();
    return plain;
  } catch {
    walk.around.length = Math.max(0, walk.around.lastIndexOf(value));
    return '<unreadable>';
  }
}

function plainInside(value: object, walk: Walk): Plain {
  if (value instanceof Error) return walkedText(describeError(value), walk);
  if (value instanceof Date) return value.toISOString();
  if (value instanceof URL) return walkedText(value.href, walk);
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `<${value.byteLength} bytes>`;
  if (value instanceof Promise) return '<promise>';
  if (value instanceof Map) return plainRecord(Object.fromEntries(firstItems(value)), walk);
  if (value instanceof Set) return plainList([...firstItems(value)], value.size, walk);
  if (Array.isArray(value)) return plainList(value.slice(0, maxItems), value.length, walk);
  return plainRecord(value as LogFields, walk);
}

function firstItems<T>(items: Iterable<T>): Iterable<T> {
  return Iterator.from(items).take(maxItems);
}

function plainList(items: readonly unknown[], size: number, walk: Walk): Plain {
  const plain = items.map((item) => plainValue(item, walk));
  if (size > items.length) plain.push(`<${size - items.length} more>`);
  return plain;
}

function plainRecord(record: LogFields, walk: Walk): PlainFields {
  const keys = Object.keys(record);
  const hides = hiddenKeys(record);
  const entries: [string, Plain][] = [];
  for (const key of keys.slice(0, maxItems)) {
    const value = readable(record, key);
    if (value !== undefined)
      entries.push([shortKey(key), hides(key) ? redactedValue(value) : plainValue(value, walk)]);
  }
  if (keys.length > maxItems) entries.push(['<more>', keys.length - maxItems]);
  // Uses Object.fromEntries, because assigning a key named __proto__ would change the prototype
  // instead.
  return Object.fromEntries(entries);
}

function shortKey(key: string): string {
  return key.length <= maxKey ? key : `${key.slice(0, maxKey)}…`;
}

function readable(record: LogFields, key: string): unknown {
  try {
    return record[key];
  } catch {
    return '<unreadable>';
  }
}

/**
 * Redacts, besides values with secret names, the data of a Secret and the value next to a secret
 * name, as in environments and headers.
 */
function hiddenKeys(record: LogFields): (key: string) => boolean {
  const isSecret = readable(record, 'kind') === 'Secret';
  const label = readable(record, 'name') ?? readable(record, 'key');
  const isPair = typeof label === 'string' && isSecretName(label);
  return (key) =>
    isSecretName(key) ||
    (isSecret && (key === 'data' || key === 'stringData')) ||
    (isPair && key === 'value');
}

/** A boolean, or the absence of a value, is not secret. */
function redactedValue(value: unknown): Plain {
  return typeof value === 'boolean' || value === null || value === '' ? value : redacted;
}
