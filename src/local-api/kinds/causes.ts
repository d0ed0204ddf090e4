import { sameValue } from '../../api/index.ts';
import type { FieldCause } from '../core/index.ts';

/** What is wrong with a field, in the words of the API: clients and tests of others read them. */

function cause(
  reason: FieldCause['reason'],
  field: string,
  parts: readonly (string | undefined)[],
): FieldCause {
  const message = parts.filter((part) => part !== undefined && part !== '').join(': ');
  return { reason, field, message };
}

export function required(field: string, detail?: string): FieldCause {
  return cause('FieldValueRequired', field, ['Required value', detail]);
}

export function invalid(field: string, value: unknown, detail: string): FieldCause {
  return cause('FieldValueInvalid', field, ['Invalid value', shown(value), detail]);
}

export function forbiddenField(field: string, detail: string): FieldCause {
  return cause('FieldValueForbidden', field, ['Forbidden', detail]);
}

export function duplicate(field: string, value: unknown, detail?: string): FieldCause {
  return cause('FieldValueDuplicate', field, ['Duplicate value', shown(value), detail]);
}

/** The values are told in the order given. */
export function notSupported(field: string, value: unknown, supported: readonly string[]): FieldCause {
  const values = supported.map((one) => JSON.stringify(one));
  const detail = `supported values: ${values.join(', ')}`;
  return cause('FieldValueNotSupported', field, ['Unsupported value', shown(value), detail]);
}

export function tooLong(field: string, mostBytes: number): FieldCause {
  return cause('FieldValueTooLong', field, ['Too long', `may not be more than ${mostBytes} bytes`]);
}

/** A field that may not change once it is there. */
export function immutable(field: string, before: unknown, after: unknown): readonly FieldCause[] {
  return sameValue(before, after) ? [] : [invalid(field, after ?? null, 'field is immutable')];
}

/** Nothing for one of these values, or for none at all where that is allowed. */
export function oneOf(
  field: string,
  value: unknown,
  supported: readonly string[],
  absent: 'allowed' | 'refused' = 'allowed',
): readonly FieldCause[] {
  if (value === undefined || value === '') return absent === 'allowed' ? [] : [required(field)];
  return supported.includes(String(value)) ? [] : [notSupported(field, value, supported)];
}

function shown(value: unknown): string {
  return JSON.stringify(value) ?? 'null';
}
