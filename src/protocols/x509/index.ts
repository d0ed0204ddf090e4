/** X.509 certificates and certificate requests: creation, parsing and verification. */

export { type ChainResult, checkChain, isValidAt, type ValidityPeriod } from './chain.ts';
export {
  type CertificateContents,
  type CertificateRequest,
  createCertificate,
  createCertificateRequest,
  type Issuer,
  readCertificateRequest,
} from './create-certificate.ts';
export type { ExtendedUse, KeyUse } from './extensions.ts';
export {
  type AltNames,
  canonicalIp,
  type Identity,
  identityKey,
  ipBytes,
  ipText,
  missingFrom,
  type Subject,
} from './identity.ts';
export { isExpired, type KeyPair, type Leaf, type PairTexts, readKeyPair, readLeaves } from './key-pair.ts';
export {
  type KeyKind,
  keyPem,
  newEcKey,
  newPrivateKey,
  type PemBlock,
  publicKeyDer,
  readPem,
  readPrivateKey,
  writePem,
} from './private-key.ts';
