import { type KeyObject, sign, verify } from 'node:crypto';
import { KubelingError } from '../../lib/index.ts';
import {
  contentOf,
  type DerElement,
  der,
  derBitString,
  derOid,
  derSequence,
  inside,
  readOid,
  tags,
} from './der.ts';

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

/** What others may have signed with: for a key of this type, what the hash of each way to sign is. */
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

export function signatureAlgorithmDer(key: KeyObject): Buffer {
  const { oid, hasParameters } = algorithmOf(key);
  return derSequence(derOid(oid), ...(hasParameters ? [der(tags.nothing)] : []));
}

/** What is signed, followed by how and by the signature: the outer form of requests and certificates alike. */
export function signedDer(what: Buffer, key: KeyObject): Buffer {
  const signature = sign(algorithmOf(key).hash, what, key);
  return derSequence(what, signatureAlgorithmDer(key), derBitString(signature));
}

/** Whether such an outer form was signed by the private half of this key. */
export function isSignedBy(signed: DerElement, publicKey: KeyObject): boolean {
  const [what, how, signature] = inside(signed, tags.sequence);
  const [oid] = inside(how, tags.sequence);
  const hash = known[publicKey.asymmetricKeyType ?? '']?.[readOid(oid)];
  if (what === undefined || hash === undefined) return false;
  return verify(hash, what.whole, publicKey, contentOf(signature, tags.bitString).subarray(1));
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
