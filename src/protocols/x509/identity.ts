import { isIP, isIPv4 } from 'node:net';
import {
  childrenOf,
  contentOf,
  type DerElement,
  der,
  derOid,
  derSequence,
  derText,
  readOid,
  tags,
} from './der.ts';

/** The subject and the alternative names of a certificate. */
export interface Identity {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly dnsNames: readonly string[];
  /** The IP addresses in canonical form. */
  readonly ips: readonly string[];
}

export type Subject = Pick<Identity, 'commonName' | 'organizations'>;
export type AltNames = Pick<Identity, 'dnsNames' | 'ips'>;

/** All kinds of subject alternative names, including those that are never created here. */
export interface ReadAltNames extends AltNames {
  readonly emailAddresses: readonly string[];
  readonly uris: readonly string[];
}

const oids = { commonName: '2.5.4.3', organization: '2.5.4.10' } as const;
const altTags = { email: 0x81, dns: 0x82, uri: 0x86, ip: 0x87 } as const;

export function subjectDer({ commonName, organizations }: Subject): Buffer {
  const name = (oid: string, value: string) => der(tags.set, derSequence(derOid(oid), derText(value)));
  return derSequence(
    ...organizations.map((organization) => name(oids.organization, organization)),
    ...(commonName === '' ? [] : [name(oids.commonName, commonName)]),
  );
}

/** Other attributes of a distinguished name are ignored. */
export function readSubject(element: DerElement | undefined): Subject {
  const parts = childrenOf(element, tags.sequence)
    .flatMap((set) => childrenOf(set, tags.set))
    .map((part) => childrenOf(part, tags.sequence));
  const all = (wanted: string) =>
    parts.filter(([oid]) => readOid(oid) === wanted).map(([, value]) => textOf(value));
  return { commonName: all(oids.commonName).at(-1) ?? '', organizations: all(oids.organization) };
}

export function altNamesDer({ dnsNames, ips }: AltNames): Buffer {
  const addresses = ips.map(ipBytes).filter((bytes) => bytes !== undefined);
  return derSequence(
    ...dnsNames.map((name) => der(altTags.dns, Buffer.from(name, 'latin1'))),
    ...addresses.map((bytes) => der(altTags.ip, bytes)),
  );
}

export function readAltNames(element: DerElement | undefined): ReadAltNames {
  const names = childrenOf(element, tags.sequence);
  const texts = (wanted: number) =>
    names.filter(({ tag }) => tag === wanted).map(({ content }) => content.toString('latin1'));
  return {
    dnsNames: texts(altTags.dns),
    emailAddresses: texts(altTags.email),
    uris: texts(altTags.uri),
    ips: names
      .filter(({ tag }) => tag === altTags.ip)
      .map(({ content }) => ipText(content))
      .filter((text) => text !== undefined),
  };
}

/**
 * Lists the parts of the required identity that the actual identity lacks; empty if nothing is
 * missing.
 */
export function missingFrom(actual: Identity, required: Identity): string[] {
  const missing = (what: string, have: readonly string[], want: readonly string[]) =>
    want.filter((value) => !have.includes(value)).map((value) => `${what} ${value}`);
  return [
    ...missing('the common name', [actual.commonName], [required.commonName]),
    ...missing('the organization', actual.organizations, required.organizations),
    ...missing('the DNS name', actual.dnsNames, required.dnsNames),
    ...missing('the address', actual.ips, required.ips),
  ];
}

/** A text that is equal for equal identities. */
export function identityKey({ commonName, organizations, dnsNames, ips }: Identity): string {
  return JSON.stringify([commonName, [...organizations].sort(), [...dnsNames].sort(), [...ips].sort()]);
}

function textOf(element: DerElement | undefined): string {
  const isWide = element?.tag === 0x1e;
  const content = contentOf(element, element?.tag ?? -1);
  return isWide ? Buffer.from(content).swap16().toString('utf16le') : content.toString('utf8');
}

/**
 * The bytes of an IP address as certificates store it; undefined if it is invalid. An IPv4-mapped
 * IPv6 address becomes IPv4.
 */
export function ipBytes(text: string): Buffer | undefined {
  if (isIP(text) === 0 || text.includes('%')) return undefined;
  if (isIPv4(text)) return Buffer.from(text.split('.').map(Number));
  const bytes = ipv6Bytes(text);
  return isMapped(bytes) ? bytes.subarray(12) : bytes;
}

/** The canonical form of an IP address, for comparison; undefined if it is invalid. */
export function canonicalIp(text: string): string | undefined {
  const bytes = ipBytes(text);
  return bytes === undefined ? undefined : ipText(bytes);
}

/** Formats an IP address of 4 or 16 bytes; undefined for other lengths. */
export function ipText(bytes: Buffer): string | undefined {
  if (bytes.length === 4) return bytes.join('.');
  if (bytes.length !== 16) return undefined;
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(index * 2).toString(16));
  return shortened(groups);
}

/** The longest run of zero groups becomes `::`; of several runs of equal length, the first one. */
function shortened(groups: readonly string[]): string {
  let best = { at: 0, length: 1 };
  for (let at = 0; at < 8; at++) {
    let length = 0;
    while (groups[at + length] === '0') length++;
    if (length > best.length) best = { at, length };
  }
  if (best.length < 2) return groups.join(':');
  return `${groups.slice(0, best.at).join(':')}::${groups.slice(best.at + best.length).join(':')}`;
}

function ipv6Bytes(text: string): Buffer {
  const [before = '', after] = text.split('::');
  const [head, tail] = [groupsOf(before), after === undefined ? [] : groupsOf(after)];
  const zeros = new Array<number>(Math.max(0, 8 - head.length - tail.length)).fill(0);
  const bytes = Buffer.alloc(16);
  for (const [index, group] of [...head, ...zeros, ...tail].entries()) bytes.writeUInt16BE(group, index * 2);
  return bytes;
}

/** The last four bytes of an IPv6 address may be written as an IPv4 address. */
function groupsOf(text: string): number[] {
  return text
    .split(':')
    .filter((group) => group !== '')
    .flatMap((group) => {
      if (!group.includes('.')) return [Number.parseInt(group, 16)];
      const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
      return [a * 256 + b, c * 256 + d];
    });
}

function isMapped(bytes: Buffer): boolean {
  return bytes.subarray(0, 10).every((byte) => byte === 0) && bytes.readUInt16BE(10) === 0xffff;
}
