import { createHash, createPublicKey, type KeyObject, randomBytes, sign, verify } from 'node:crypto';
import { KubelingError } from '../../lib/index.ts';
import {
  childrenOf,
  contentOf,
  type DerElement,
  der,
  derBitString,
  derInteger,
  derOid,
  derSequence,
  derTagged,
  derTime,
  readOid,
  readOneDer,
  tags,
} from './der.ts';
import {
  altNamesExtension,
  altNamesIn,
  authorityKeyIdExtension,
  basicConstraintsExtension,
  type ExtendedUse,
  extendedUseExtension,
  type KeyUse,
  keyUsageExtension,
  subjectKeyIdExtension,
} from './extensions.ts';
import {
  type AltNames,
  type Identity,
  type ReadAltNames,
  readSubject,
  type Subject,
  subjectDer,
} from './identity.ts';
import { publicKeyDer, readPem, writePem } from './private-key.ts';

export interface CertificateContents {
  readonly identity: Identity;
  /** The public key of the certificate; of a private key the public part is used. */
  readonly key: KeyObject;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  readonly uses: readonly KeyUse[];
  readonly extendedUses: readonly ExtendedUse[];
  readonly role: 'authority' | 'leaf';
}

export interface Issuer {
  readonly subject: Subject;
  readonly key: KeyObject;
}

/**
 * Creates an X.509 v3 certificate in PEM. For a self-signed one the issuer has the same subject and
 * key.
 */
export function createCertificate(contents: CertificateContents, issuer: Issuer): string {
  const { identity, key, notBeforeMs, notAfterMs } = contents;
  const toBeSigned = derSequence(
    derTagged(0, derInteger(Buffer.from([2]))),
    serialNumber(),
    signatureAlgorithmDer(issuer.key),
    subjectDer(issuer.subject),
    derSequence(derTime(notBeforeMs), derTime(notAfterMs)),
    subjectDer(identity),
    publicKeyDer(key),
    derTagged(3, derSequence(...extensionsOf(contents, issuer))),
  );
  return writePem({ label: 'CERTIFICATE', der: signedDer(toBeSigned, issuer.key) });
}

/** An unpredictable positive serial number. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return derInteger(bytes);
}

function extensionsOf(contents: CertificateContents, issuer: Issuer): Buffer[] {
  const { identity, key, uses, extendedUses, role } = contents;
  const hasNames = identity.dnsNames.length + identity.ips.length > 0;
  const [own, issuers] = [keyId(key), keyId(issuer.key)];
  return [
    ...(uses.length > 0 ? [keyUsageExtension(uses)] : []),
    ...(extendedUses.length > 0 ? [extendedUseExtension(extendedUses)] : []),
    basicConstraintsExtension(role),
    subjectKeyIdExtension(own),
    ...(issuers.equals(own) ? [] : [authorityKeyIdExtension(issuers)]),
    ...(hasNames ? [altNamesExtension(identity)] : []),
  ];
}

function keyId(key: KeyObject): Buffer {
  return createHash('sha1').update(publicKeyDer(key)).digest();
}

interface Algorithm {
  readonly oid: string;
  readonly hash: string | null;
  readonly hasParameters: boolean;
}

const rsa: Algorithm = { oid: '1.2.840.113549.1.1.11', hash: 'sha256', hasParameters: true };
const ed25519: Algorithm = { oid: '1.3.101.112', hash: null, hasParameters: false };
const ecdsa: Readonly<Record<string, Algorithm>> = {
  prime256v1: { oid: '1.2.840.10045.4.3.2', hash: 'sha256', hasParameters: false },
  secp384r1: { oid: '1.2.840.10045.4.3.3', hash: 'sha384', hasParameters: false },
  secp521r1: { oid: '1.2.840.10045.4.3.4', hash: 'sha512', hasParameters: false },
};

/** The supported signature algorithms: the hash of each algorithm by the type of the key. */
const known: Readonly<Record<string, Readonly<Record<string, string | null>>>> = {
  rsa: {
    '1.2.840.113549.1.1.11': 'sha256',
    '1.2.840.113549.1.1.12': 'sha384',
    '1.2.840.113549.1.1.13': 'sha512',
  },
  ec: {
    '1.2.840.10045.4.3.2': 'sha256',
    '1.2.840.10045.4.3.3': 'sha384',
    '1.2.840.10045.4.3.4': 'sha512',
  },
  ed25519: { '1.3.101.112': null },
};

function signatureAlgorithmDer(key: KeyObject): Buffer {
  const { oid, hasParameters } = algorithmOf(key);
  return derSequence(derOid(oid), ...(hasParameters ? [der(tags.nothing)] : []));
}

/**
 * Encodes signed content, followed by the algorithm and the signature: the outer structure of
 * certificate requests and certificates.
 */
function signedDer(what: Buffer, key: KeyObject): Buffer {
  const signature = sign(algorithmOf(key).hash, what, key);
  return derSequence(what, signatureAlgorithmDer(key), derBitString(signature));
}

/** Whether a certificate request or certificate was signed with this key. */
function isSignedBy(signed: DerElement, publicKey: KeyObject): boolean {
  const [what, how, signature] = childrenOf(signed, tags.sequence);
  const [oid] = childrenOf(how, tags.sequence);
  const hash = known[publicKey.asymmetricKeyType ?? '']?.[readOid(oid)];
  if (what === undefined || hash === undefined) return false;
  return verify(hash, what.bytes, publicKey, contentOf(signature, tags.bitString).subarray(1));
}

function algorithmOf(key: KeyObject): Algorithm {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  const curve = details?.namedCurve ?? '';
  const algorithm = type === 'rsa' ? rsa : type === 'ed25519' ? ed25519 : ecdsa[curve];
  if (algorithm !== undefined) return algorithm;
  throw new KubelingError(
    'CERTIFICATE_INVALID',
    `Cannot sign with a key that must be RSA, Ed25519 or of a P curve: it is ${type} ${curve}`.trimEnd(),
  );
}

const label = 'CERTIFICATE REQUEST';
const extensionRequest = '1.2.840.113549.1.9.14';

/** Creates a PKCS #10 certificate request in PEM, signed with its own key. */
export function createCertificateRequest(identity: Identity, key: KeyObject): string {
  const info = derSequence(
    derInteger(Buffer.from([0])),
    subjectDer(identity),
    publicKeyDer(key),
    derTagged(0, ...attributes(identity)),
  );
  return writePem({ label, der: signedDer(info, key) });
}

export interface CertificateRequest {
  readonly identity: Identity;
  readonly emailAddresses: readonly string[];
  readonly uris: readonly string[];
  readonly publicKey: KeyObject;
}

/** Parses a certificate request; throws unless it was signed with the requester's key. */
export function readCertificateRequest(pem: string): CertificateRequest {
  const block = readPem(pem).find((one) => one.label === label);
  if (block === undefined) throw invalid(`it must have a PEM block ${label}`);
  const whole = readOneDer(block.der);
  const [, subject, publicKey, attributeSet] = childrenOf(childrenOf(whole, tags.sequence)[0], tags.sequence);
  const key = createPublicKey({ key: publicKey?.bytes ?? Buffer.alloc(0), format: 'der', type: 'spki' });
  if (!isSignedBy(whole, key)) throw invalid('its signature is wrong');
  const { dnsNames, ips, emailAddresses, uris } = requestedNames(attributeSet);
  return { identity: { ...readSubject(subject), dnsNames, ips }, emailAddresses, uris, publicKey: key };
}

function attributes(identity: AltNames): Buffer[] {
  if (identity.dnsNames.length + identity.ips.length === 0) return [];
  const extensions = derSequence(altNamesExtension(identity));
  return [derSequence(derOid(extensionRequest), der(tags.set, extensions))];
}

function requestedNames(attributeSet: Parameters<typeof childrenOf>[0]): ReadAltNames {
  for (const attribute of childrenOf(attributeSet, 0xa0)) {
    const [oid, values] = childrenOf(attribute, tags.sequence);
    if (readOid(oid) !== extensionRequest) continue;
    return altNamesIn(childrenOf(values, tags.set).flatMap((value) => childrenOf(value, tags.sequence)));
  }
  return altNamesIn([]);
}

function invalid(why: string): KubelingError {
  return new KubelingError('CERTIFICATE_INVALID', `Cannot read the certificate request: ${why}`);
}
