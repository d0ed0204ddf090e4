import { X509Certificate } from 'node:crypto';
import { KubelingError } from '../../lib/index.ts';
import { childrenOf, readOneDer, tags } from './der.ts';
import { altNamesIn } from './extensions.ts';
import { type Identity, readSubject } from './identity.ts';
import { keyPem, readPem, readPrivateKey, writePem } from './private-key.ts';

/** The fields of a certificate that are used. */
export interface Leaf extends Identity {
  readonly issuerName: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** The SHA-256 fingerprint in hexadecimal, which identifies the certificate. */
  readonly fingerprint: string;
}

/** A certificate with its intermediates and its private key, which match. */
export interface KeyPair {
  readonly leaf: Leaf;
  /** The certificates of the chain, the leaf first. */
  readonly certificatePem: string;
  readonly keyPem: string;
  /** The file from which the pair was read, for messages. */
  readonly from: string;
}

export interface PairTexts {
  readonly certificate: string;
  readonly key: string;
  /** The file or files of the pair, for error messages. */
  readonly from: string;
}

const certificateLabel = 'CERTIFICATE';

/**
 * Parses a certificate and its key. Throws CERTIFICATE_INVALID that names the file. A text that
 * contains both the certificate and the key may be passed for both parameters.
 */
export function readKeyPair({ certificate, key, from }: PairTexts): KeyPair {
  const certificates = certificatesIn(certificate, from);
  const [first] = certificates;
  const privateKey = readPrivateKey(key);
  if (first === undefined) throw invalid(from, 'it must have a PEM block CERTIFICATE: there is none');
  if (privateKey === undefined)
    throw invalid(from, 'it must have a private key in PEM: there is none that can be read');
  if (!first.checkPrivateKey(privateKey))
    throw invalid(from, 'its first certificate must fit its key: it does not');
  return {
    leaf: leafOf(first),
    certificatePem: certificates.map(({ raw: der }) => writePem({ label: certificateLabel, der })).join(''),
    keyPem: keyPem(privateKey),
    from,
  };
}

/**
 * The fields of each certificate in a text; throws CERTIFICATE_INVALID if a certificate is
 * unreadable.
 */
export function readLeaves(pem: string, from: string): Leaf[] {
  return certificatesIn(pem, from).map(leafOf);
}

function certificatesIn(pem: string, from: string): X509Certificate[] {
  const blocks = readPem(pem).filter(({ label }) => label === certificateLabel);
  try {
    return blocks.map(({ der }) => new X509Certificate(der));
  } catch (error) {
    throw invalid(from, 'one of its certificates cannot be read', error);
  }
}

function leafOf(certificate: X509Certificate): Leaf {
  const fields = childrenOf(childrenOf(readOneDer(certificate.raw), tags.sequence)[0], tags.sequence);
  // The version field is optional and precedes the serial number.
  const at = fields[0]?.tag === 0xa0 ? 1 : 0;
  const extensions = fields.find(({ tag }) => tag === 0xa3);
  const list = extensions === undefined ? [] : childrenOf(readOneDer(extensions.content), tags.sequence);
  const { dnsNames, ips } = altNamesIn(list);
  return {
    ...readSubject(fields[at + 4]),
    dnsNames,
    ips,
    issuerName: readSubject(fields[at + 2]).commonName,
    notBeforeMs: certificate.validFromDate.getTime(),
    notAfterMs: certificate.validToDate.getTime(),
    fingerprint: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
  };
}

/** Whether the certificate has expired. */
export function isExpired(leaf: Leaf, nowMs: number): boolean {
  return nowMs > leaf.notAfterMs;
}

function invalid(from: string, why: string, cause?: unknown): KubelingError {
  return new KubelingError('CERTIFICATE_INVALID', `Cannot use the certificate in ${from} as ${why}`, {
    cause,
    details: { from },
  });
}
