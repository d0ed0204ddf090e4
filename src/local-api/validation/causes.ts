import { sameValue } from '../../api/index.ts';
import type { FieldProblem } from '../../pods/index.ts';
import { ipAddress } from '../../pods/validation/index.ts';
import { ipBytes } from '../../protocols/x509/index.ts';
import type { FieldCause } from '../api/index.ts';

/**
 * Constructors for the causes of an Invalid error, each about one field, with the messages of the
 * API server.
 */

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

/** The error for an unsupported value; lists the supported ones in the given order. */
export function notSupported(field: string, value: unknown, supported: readonly string[]): FieldCause {
  const values = supported.map((one) => JSON.stringify(one));
  const detail = `supported values: ${values.join(', ')}`;
  return cause('FieldValueNotSupported', field, ['Unsupported value', shown(value), detail]);
}

export function tooLong(field: string, mostBytes: number): FieldCause {
  return cause('FieldValueTooLong', field, ['Too long', `may not be more than ${mostBytes} bytes`]);
}

/** Rejects a change of an immutable field. */
export function immutable(field: string, before: unknown, after: unknown): readonly FieldCause[] {
  return sameValue(before, after) ? [] : [invalid(field, after ?? null, 'field is immutable')];
}

/** Requires a supported value; by default the field may be unset. */
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

export function addressCauses(field: string, address: string): readonly FieldCause[] {
  return ipAddress(address).map((message) => invalid(field, address, message));
}

/** Rejects special-use IP addresses, which are not valid in Endpoints. */
export function endpointAddressCauses(field: string, address: string): readonly FieldCause[] {
  const bytes = ipBytes(address);
  if (bytes === undefined) return [invalid(field, address, 'must be a valid IP address')];
  const why = specialUse(bytes);
  return why === undefined ? [] : [invalid(field, address, why.replace('$', address))];
}

function specialUse(bytes: Buffer): string | undefined {
  const [first = 0, second = 0, third = 0] = bytes;
  const isFour = bytes.length === 4;
  if (bytes.every((byte) => byte === 0)) return 'may not be unspecified ($)';
  const isLoopback = isFour
    ? first === 127
    : bytes.subarray(0, 15).every((byte) => byte === 0) && bytes[15] === 1;
  if (isLoopback) return 'may not be in the loopback range (127.0.0.0/8, ::1/128)';
  if (isFour ? first === 169 && second === 254 : first === 0xfe && (second & 0xc0) === 0x80)
    return 'may not be in the link-local range (169.254.0.0/16, fe80::/10)';
  if (isFour ? first === 224 && second === 0 && third === 0 : first === 0xff && (second & 0x0f) === 0x02)
    return 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)';
  return undefined;
}

export function portCauses(field: string, port: number): readonly FieldCause[] {
  return port >= 1 && port <= 65_535 ? [] : [invalid(field, port, 'must be between 1 and 65535, inclusive')];
}

export function causesOf(problems: readonly FieldProblem[]): readonly FieldCause[] {
  return problems.map(({ named, reason, message }) => ({ reason, field: named.toString(), message }));
}
