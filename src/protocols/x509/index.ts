/** Certificates and requests for them as X.509 writes them: made, read, and held against those who vouch for them. */
export {
  type CertificateRequest,
  makeCertificateRequest,
  readCertificateRequest,
} from './certificate-request.ts';
export { type ChainVerdict, checkChain, holds, type ValidTime } from './chain.ts';
export type { ExtendedUse, KeyUse } from './extensions.ts';
export { type AltNames, type Identity, identityKey, lackingOf, type Subject } from './identity.ts';
export { canonicalIp, ipBytes, ipText } from './ip-address.ts';
export { isExpired, type KeyPair, type Leaf, type PairTexts, readKeyPair, readLeaves } from './key-pair.ts';
export { type CertificateContents, type Issuer, makeCertificate } from './make-certificate.ts';
export { type PemBlock, readPem, writePem } from './pem.ts';
export {
  type KeyKind,
  keyPem,
  newEcKey,
  newPrivateKey,
  publicKeyDer,
  readPrivateKey,
} from './private-key.ts';
