import { createPublicKey, type KeyObject } from 'node:crypto';
import { KubelingError } from '../../lib/index.ts';
import { der, derInteger, derOid, derSequence, derTagged, inside, readOid, readOneDer, tags } from './der.ts';
import { altNamesExtension, altNamesIn } from './extensions.ts';
import { type AltNames, type Identity, type ReadAltNames, readSubject, subjectDer } from './identity.ts';
import { readPem, writePem } from './pem.ts';
import { publicKeyDer } from './private-key.ts';
import { isSignedBy, signedDer } from './signing.ts';

const label = 'CERTIFICATE REQUEST';
const extensionRequest = '1.2.840.113549.1.9.14';

/** A PKCS #10 request in PEM, signed by the key it is for. */
export function makeCertificateRequest(identity: Identity, key: KeyObject): string {
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

/** Also checks that whoever made it has the key. */
export function readCertificateRequest(pem: string): CertificateRequest {
  const block = readPem(pem).find((one) => one.label === label);
  if (block === undefined) throw invalid(`it must have a PEM block ${label}`);
  const whole = readOneDer(block.der);
  const [, subject, publicKey, attributeSet] = inside(inside(whole, tags.sequence)[0], tags.sequence);
  const key = createPublicKey({ key: publicKey?.whole ?? Buffer.alloc(0), format: 'der', type: 'spki' });
  if (!isSignedBy(whole, key)) throw invalid('its signature is wrong');
  const { dnsNames, ips, emailAddresses, uris } = requestedNames(attributeSet);
  return { identity: { ...readSubject(subject), dnsNames, ips }, emailAddresses, uris, publicKey: key };
}

function attributes(identity: AltNames): Buffer[] {
  if (identity.dnsNames.length + identity.ips.length === 0) return [];
  const extensions = derSequence(altNamesExtension(identity));
  return [derSequence(derOid(extensionRequest), der(tags.set, extensions))];
}

function requestedNames(attributeSet: Parameters<typeof inside>[0]): ReadAltNames {
  for (const attribute of inside(attributeSet, 0xa0)) {
    const [oid, values] = inside(attribute, tags.sequence);
    if (readOid(oid) !== extensionRequest) continue;
    return altNamesIn(inside(values, tags.set).flatMap((value) => inside(value, tags.sequence)));
  }
  return altNamesIn([]);
}

function invalid(why: string): KubelingError {
  return new KubelingError('CERTIFICATE_INVALID', `Cannot read the certificate request: ${why}`);
}
