import { describeError, KubelingError } from '../../lib/index.ts';
import {
  type CertificateRequest,
  type ExtendedUse,
  type KeyUse,
  readCertificateRequest,
} from '../../protocols/x509/index.ts';
import type { CertificateSigner, SigningParameters } from '../kinds/index.ts';
import type { CertificateAuthority } from './certificate-authority.ts';

/** The key usages of certificate requests. Those of a CA are not supported. */
const keyUses: Readonly<Record<string, KeyUse>> = {
  signing: 'digital-signature',
  'digital signature': 'digital-signature',
  'content commitment': 'content-commitment',
  'key encipherment': 'key-encipherment',
  'data encipherment': 'data-encipherment',
  'key agreement': 'key-agreement',
};
const extendedUses: Readonly<Record<string, ExtendedUse>> = {
  'server auth': 'server-auth',
  'client auth': 'client-auth',
};

/** Signs approved requests; the certificate controller decides about the approval. */
export function createCertificateSigner(authority: Pick<CertificateAuthority, 'issue'>): CertificateSigner {
  return {
    read(request) {
      try {
        const { identity, emailAddresses, uris } = readCertificateRequest(request);
        const { commonName, organizations, dnsNames, ips: ipAddresses } = identity;
        return { commonName, organizations, dnsNames, ipAddresses, emailAddresses, uris };
      } catch {
        return undefined;
      }
    },
    sign: (order) => signCertificate(order, authority),
  };
}

function signCertificate(order: SigningParameters, authority: Pick<CertificateAuthority, 'issue'>): string {
  const { identity, emailAddresses, uris, publicKey } = readRequest(order);
  const strange = order.usages.filter(
    (use) => !Object.hasOwn(keyUses, use) && !Object.hasOwn(extendedUses, use),
  );
  const problems = [
    ...strange.map((use) => `the usage ${JSON.stringify(use)} is not supported`),
    ...[...emailAddresses, ...uris].map((name) => `the name ${name} is not supported`),
    ...(order.notAfter <= order.notBefore ? ['it would expire before it becomes valid'] : []),
  ];
  if (problems.length > 0) throw notIssued(problems.join('; '));
  const named = <T>(table: Readonly<Record<string, T>>) => [
    ...new Set(order.usages.filter((use) => Object.hasOwn(table, use)).map((use) => table[use] as T)),
  ];
  return authority.issue({
    identity,
    key: publicKey,
    notBeforeMs: order.notBefore,
    notAfterMs: order.notAfter,
    uses: named(keyUses),
    extendedUses: named(extendedUses),
  });
}

function readRequest({ request }: SigningParameters): CertificateRequest {
  try {
    return readCertificateRequest(request);
  } catch (error) {
    throw notIssued(describeError(error));
  }
}

function notIssued(why: string): KubelingError {
  return new KubelingError('CERTIFICATE_NOT_ISSUED', `Cannot sign the certificate: ${why}`);
}
