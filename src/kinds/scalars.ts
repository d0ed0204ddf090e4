import { formatQuantity, tryParseQuantity, type YamlScalar } from '../lib/index.ts';
import type { ScalarType } from './table.ts';

/**
 * The decoded value of a scalar as API objects store it, or the text of the finding: what the value
 * must be.
 */
export type ReadScalar = { readonly value: unknown } | { readonly must: string };

/** Decodes a scalar of the type. Null is handled by the caller: it means absent. */
export function readScalar(type: ScalarType, value: Exclude<YamlScalar, null>): ReadScalar {
  switch (type) {
    case 'string':
      return typeof value === 'string' ? { value } : { must: 'a string (put it in quotes)' };
    case 'bool':
      return typeof value === 'boolean' ? { value } : { must: 'true or false' };
    case 'int32':
      return readInteger(value, 2n ** 31n, 'a whole number of 32 bits');
    case 'int64':
      return readInteger(value, 2n ** 63n, 'a whole number of 64 bits');
    case 'Quantity':
      return readQuantity(value);
    case 'IntOrString':
      return typeof value === 'string'
        ? { value }
        : readInteger(value, 2n ** 31n, 'a whole number or a string');
    case 'Time':
      return readTime(value, 'seconds');
    case 'MicroTime':
      return readTime(value, 'microseconds');
    case 'bytes':
      return readBytes(value);
    case 'FieldsV1':
    case 'ExtraValue':
      return { value };
  }
}

export function zeroOf(type: ScalarType): unknown {
  switch (type) {
    case 'bool':
      return false;
    case 'int32':
    case 'int64':
    case 'IntOrString':
      return 0;
    case 'Quantity':
      return '0';
    case 'FieldsV1':
      return {};
    case 'ExtraValue':
      return [];
    default:
      return '';
  }
}

function readInteger(value: Exclude<YamlScalar, null>, limit: bigint, must: string): ReadScalar {
  const whole = typeof value === 'bigint' || Number.isInteger(value) ? BigInt(value as number) : undefined;
  if (whole === undefined || whole >= limit || whole < -limit) return { must };
  // JavaScript numbers beyond 53 bits are not exact; no field of the API needs such numbers.
  return Number.isSafeInteger(Number(whole)) ? { value: Number(whole) } : { must };
}

function readQuantity(value: Exclude<YamlScalar, null>): ReadScalar {
  const quantity = typeof value === 'boolean' ? undefined : tryParseQuantity(String(value).trim());
  return quantity === undefined
    ? { must: 'a quantity such as 500m, 64Mi or 2G' }
    : { value: formatQuantity(quantity) };
}

const rfc3339 =
  /^\d{4}-(\d\d)-(\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.(\d+))?(?:Z|[-+]([01]\d|2[0-3]):[0-5]\d)$/;

function readTime(value: Exclude<YamlScalar, null>, precision: 'seconds' | 'microseconds'): ReadScalar {
  const must = 'a time such as 2026-01-31T12:00:00Z';
  const parts = typeof value === 'string' ? rfc3339.exec(value) : null;
  const ms = parts === null ? Number.NaN : Date.parse(String(value));
  if (parts === null || Number.isNaN(ms)) return { must };
  const seconds = new Date(Math.floor(ms / 1000) * 1000).toISOString().slice(0, 19);
  const micros = (parts[4] ?? '').slice(0, 6).padEnd(6, '0');
  return { value: precision === 'seconds' ? `${seconds}Z` : `${seconds}.${micros}Z` };
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/**
 * The base64 text may have line breaks, because YAML folds long text; they are removed from the
 * value.
 */
function readBytes(value: Exclude<YamlScalar, null>): ReadScalar {
  const text = typeof value === 'string' ? value.replace(/[\r\n]/g, '') : undefined;
  return text !== undefined && base64.test(text) ? { value: text } : { must: 'base64' };
}
