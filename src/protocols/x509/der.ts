import { KubelingError } from '../../lib/index.ts';

/** The ASN.1 tags that certificates use. */
export const tags = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  nothing: 0x05,
  oid: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/**
 * Encodes one ASN.1 element with its tag and length (DER: every value has exactly one encoding).
 */
export function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), lengthBytes(content.length), content]);
}

export function derSequence(...parts: readonly Uint8Array[]): Buffer {
  return der(tags.sequence, ...parts);
}

/**
 * Encodes the context-specific tag `[n]`, around complete elements or in place of the tag of a
 * constructed element.
 */
export function derTagged(number: number, ...parts: readonly Uint8Array[]): Buffer {
  return der(0xa0 + number, ...parts);
}

/** Encodes a non-negative integer from its big-endian bytes. */
export function derInteger(magnitude: Uint8Array): Buffer {
  const from = magnitude.findIndex((byte) => byte !== 0);
  const short = from < 0 ? Buffer.from([0]) : magnitude.subarray(from);
  // A zero byte is added in front of a set leading bit, which would make the integer negative.
  const sign = (short[0] ?? 0) >= 0x80 ? [Buffer.from([0])] : [];
  return der(tags.integer, ...sign, short);
}

export function derOid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return der(tags.oid, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** Encodes a bit string from bytes. */
export function derBitString(bytes: Uint8Array, unusedBits = 0): Buffer {
  return der(tags.bitString, Buffer.from([unusedBits]), bytes);
}

export function derText(text: string): Buffer {
  return der(tags.utf8String, Buffer.from(text, 'utf8'));
}

export function derTrue(): Buffer {
  return der(tags.boolean, Buffer.from([0xff]));
}

/** Encodes a time with seconds. Years from 2050 on use GeneralizedTime, as X.509 requires. */
export function derTime(ms: number): Buffer {
  const text = new Date(ms)
    .toISOString()
    .replace(/\.\d+Z$/, 'Z')
    .replace(/[-:T]/g, '');
  const isShort = Number(text.slice(0, 4)) < 2050;
  return isShort
    ? der(tags.utcTime, Buffer.from(text.slice(2), 'ascii'))
    : der(tags.generalizedTime, Buffer.from(text, 'ascii'));
}

function lengthBytes(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let left = length; left > 0; left = Math.floor(left / 256)) bytes.unshift(left % 256);
  return Buffer.from([0x80 + bytes.length, ...bytes]);
}

function base128(value: number): number[] {
  const digits = [value % 128];
  for (let left = Math.floor(value / 128); left > 0; left = Math.floor(left / 128)) {
    digits.unshift((left % 128) + 0x80);
  }
  return digits;
}

export interface DerElement {
  readonly tag: number;
  readonly content: Buffer;
  /** The complete element, including its tag and length. */
  readonly bytes: Buffer;
}

/** Decodes the consecutive elements in the bytes. */
export function readDer(bytes: Buffer): DerElement[] {
  const elements: DerElement[] = [];
  for (let at = 0; at < bytes.length; ) {
    const element = elementAt(bytes, at);
    elements.push(element);
    at += element.bytes.length;
  }
  return elements;
}

/** Decodes the only element in the bytes. */
export function readOneDer(bytes: Buffer): DerElement {
  const [element, ...more] = readDer(bytes);
  if (element === undefined || more.length > 0) throw malformed('it must be one value');
  return element;
}

/** Decodes the elements inside an element that must have this tag. */
export function childrenOf(element: DerElement | undefined, tag: number): DerElement[] {
  return readDer(contentOf(element, tag));
}

export function contentOf(element: DerElement | undefined, tag: number): Buffer {
  if (element?.tag !== tag) throw malformed(`tag ${tag} is missing`);
  return element.content;
}

/** Decodes an object identifier to dotted form. */
export function readOid(element: DerElement | undefined): string {
  const [first = 0, ...rest] = contentOf(element, tags.oid);
  const arcs = [Math.min(2, Math.floor(first / 40)), 0];
  arcs[1] = first - (arcs[0] ?? 0) * 40;
  let value = 0;
  for (const byte of rest) {
    value = value * 128 + (byte % 128);
    if (byte >= 0x80) continue;
    arcs.push(value);
    value = 0;
  }
  return arcs.join('.');
}

function elementAt(bytes: Buffer, at: number): DerElement {
  const tag = byteAt(bytes, at);
  const first = byteAt(bytes, at + 1);
  const lengthSize = first < 0x80 ? 0 : first - 0x80;
  if (lengthSize > 4 || first === 0x80) throw malformed('a length has an invalid encoding');
  let length = lengthSize === 0 ? first : 0;
  for (let index = 0; index < lengthSize; index++) length = length * 256 + byteAt(bytes, at + 2 + index);
  const start = at + 2 + lengthSize;
  if (start + length > bytes.length) throw malformed('it ends early');
  return { tag, content: bytes.subarray(start, start + length), bytes: bytes.subarray(at, start + length) };
}

function byteAt(bytes: Buffer, at: number): number {
  const byte = bytes[at];
  if (byte === undefined) throw malformed('it ends early');
  return byte;
}

function malformed(why: string): KubelingError {
  return new KubelingError('CERTIFICATE_INVALID', `Cannot read ASN.1: ${why}`);
}
