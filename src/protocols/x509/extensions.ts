import {
  childrenOf,
  contentOf,
  type DerElement,
  der,
  derBitString,
  derOid,
  derSequence,
  derTrue,
  readOid,
  readOneDer,
  tags,
} from './der.ts';
import { type AltNames, altNamesDer, type ReadAltNames, readAltNames } from './identity.ts';

const oids = {
  subjectKeyId: '2.5.29.14',
  keyUsage: '2.5.29.15',
  altNames: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyId: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
} as const;

export type KeyUse =
  | 'digital-signature'
  | 'content-commitment'
  | 'key-encipherment'
  | 'data-encipherment'
  | 'key-agreement'
  | 'certificate-sign'
  | 'crl-sign';
export type ExtendedUse = 'server-auth' | 'client-auth';

/**
 * The context-specific tag of the key identifier in the authority key identifier extension; it
 * replaces the tag of an octet string.
 */
const keyIdTag = 0x80;

/** The numbers of key usage bits, counted from the highest bit. */
const useBits: Readonly<Record<KeyUse, number>> = {
  'digital-signature': 0,
  'content-commitment': 1,
  'key-encipherment': 2,
  'data-encipherment': 3,
  'key-agreement': 4,
  'certificate-sign': 5,
  'crl-sign': 6,
};
const extendedOids: Readonly<Record<ExtendedUse, string>> = {
  'server-auth': '1.3.6.1.5.5.7.3.1',
  'client-auth': '1.3.6.1.5.5.7.3.2',
};

export function altNamesExtension(names: AltNames): Buffer {
  return extension(oids.altNames, 'plain', altNamesDer(names));
}

export function keyUsageExtension(uses: readonly KeyUse[]): Buffer {
  const bits = uses.map((use) => useBits[use]);
  const byte = bits.reduce((sum, bit) => sum | (0x80 >> bit), 0);
  return extension(oids.keyUsage, 'critical', derBitString(Buffer.from([byte]), 7 - Math.max(0, ...bits)));
}

export function extendedUseExtension(uses: readonly ExtendedUse[]): Buffer {
  const names = uses.map((use) => derOid(extendedOids[use]));
  return extension(oids.extendedKeyUsage, 'plain', derSequence(...names));
}

export function basicConstraintsExtension(role: 'authority' | 'leaf'): Buffer {
  return extension(
    oids.basicConstraints,
    'critical',
    derSequence(...(role === 'authority' ? [derTrue()] : [])),
  );
}

export function subjectKeyIdExtension(id: Uint8Array): Buffer {
  return extension(oids.subjectKeyId, 'plain', der(tags.octetString, id));
}

/** The identifier of the issuer's key, which some clients require. */
export function authorityKeyIdExtension(id: Uint8Array): Buffer {
  return extension(oids.authorityKeyId, 'plain', derSequence(der(keyIdTag, id)));
}

/** The subject alternative names in a list of extensions; none without that extension. */
export function altNamesIn(extensions: readonly DerElement[]): ReadAltNames {
  for (const one of extensions) {
    const [oid, ...rest] = childrenOf(one, tags.sequence);
    if (readOid(oid) !== oids.altNames) continue;
    return readAltNames(readOneDer(contentOf(rest.at(-1), tags.octetString)));
  }
  return { dnsNames: [], ips: [], emailAddresses: [], uris: [] };
}

function extension(oid: string, weight: 'critical' | 'plain', value: Uint8Array): Buffer {
  const critical = weight === 'critical' ? [derTrue()] : [];
  return derSequence(derOid(oid), ...critical, der(tags.octetString, value));
}
