import { createHash, type KeyObject, randomBytes } from 'node:crypto';
import { derInteger, derSequence, derTagged, derTime } from './der.ts';
import {
  altNamesExtension,
  authorityKeyIdExtension,
  basicConstraintsExtension,
  type ExtendedUse,
  extendedUseExtension,
  type KeyUse,
  keyUsageExtension,
  subjectKeyIdExtension,
} from './extensions.ts';
import { type Identity, type Subject, subjectDer } from './identity.ts';
import { writePem } from './pem.ts';
import { publicKeyDer } from './private-key.ts';
import { signatureAlgorithmDer, signedDer } from './signing.ts';

export interface CertificateContents {
  readonly identity: Identity;
  /** Whose certificate it is; a private key stands for its public half. */
  readonly key: KeyObject;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  readonly uses: readonly KeyUse[];
  readonly extendedUses: readonly ExtendedUse[];
  readonly who: 'authority' | 'leaf';
}

export interface Issuer {
  readonly subject: Subject;
  readonly key: KeyObject;
}

/** An X.509 v3 certificate in PEM. One that signs itself names its own subject and key as the issuer. */
export function makeCertificate(contents: CertificateContents, issuer: Issuer): string {
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

/** Never told beforehand, never zero, never negative. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return derInteger(bytes);
}

function extensionsOf(contents: CertificateContents, issuer: Issuer): Buffer[] {
  const { identity, key, uses, extendedUses, who } = contents;
  const hasNames = identity.dnsNames.length + identity.ips.length > 0;
  const [own, issuers] = [keyId(key), keyId(issuer.key)];
  return [
    ...(uses.length > 0 ? [keyUsageExtension(uses)] : []),
    ...(extendedUses.length > 0 ? [extendedUseExtension(extendedUses)] : []),
    basicConstraintsExtension(who),
    subjectKeyIdExtension(own),
    ...(issuers.equals(own) ? [] : [authorityKeyIdExtension(issuers)]),
    ...(hasNames ? [altNamesExtension(identity)] : []),
  ];
}

function keyId(key: KeyObject): Buffer {
  return createHash('sha1').update(publicKeyDer(key)).digest();
}
