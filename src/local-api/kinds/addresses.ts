import { ipAddress } from '../../pods/validation/index.ts';
import { ipBytes } from '../../protocols/x509/index.ts';
import type { FieldCause } from '../core/index.ts';
import { invalid } from './causes.ts';

export function addressCauses(field: string, address: string): readonly FieldCause[] {
  return ipAddress(address).map((message) => invalid(field, address, message));
}

/** Addresses behind a service: those that mean something else on each machine are refused. */
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
