import { createHash, type X509Certificate } from 'node:crypto';
import { type Clock, KubelingError } from '../../lib/index.ts';
import { checkChain, holds, type ValidTime } from '../../protocols/x509/index.ts';
import type { CaBundle, ClientCa } from './client-ca.ts';
import type { Authentication, Authenticator, PeerCertificate, User } from './identity.ts';

export interface X509Deps {
  readonly ca: Pick<ClientCa, 'current'>;
  readonly clock: Pick<Clock, 'now'>;
}

const credentialId = 'authentication.kubernetes.io/credential-id';
const uidName = '1.3.6.1.4.1.57683.2';

/** What was found for a certificate, good for the bundle and the time it was found with. */
interface Vouched {
  readonly bundle: CaBundle;
  readonly time: ValidTime;
}

/**
 * Clients that show a certificate. Connections live long, so each request asks again: TLS must have trusted the client
 * when it connected, and the authorities of now must vouch for it now.
 */
export function x509Authenticator({ ca, clock }: X509Deps): Authenticator {
  // By the certificate object, which lives as long as its connection.
  const known = new WeakMap<X509Certificate, Vouched>();
  const problem = ({ chain, verdict }: PeerCertificate, own: X509Certificate): string | undefined => {
    if (verdict.kind === 'untrusted') return verdict.why;
    const [bundle, now] = [ca.current(), clock.now()];
    const before = known.get(own);
    if (before?.bundle === bundle && holds(before.time, now)) return undefined;
    const found = checkChain(chain, bundle.certificates, now);
    if (found.kind === 'stranger') return found.why;
    known.set(own, { bundle, time: found.time });
    return undefined;
  };
  return {
    authenticate({ certificate }) {
      const own = certificate?.chain[0];
      if (certificate === undefined || own === undefined) return { kind: 'none' };
      const why = problem(certificate, own);
      return why === undefined ? userOf(own) : failed(own, why);
    },
  };
}

function failed(certificate: X509Certificate, why: string): Authentication {
  const details = { serialNumber: certificate.serialNumber, subject: certificate.subject };
  return {
    kind: 'failed',
    error: new KubelingError('AUTH_FAILED', `Cannot trust the certificate of a client: ${why}`, { details }),
  };
}

/** The common name is the user, the organizations are the groups; without a name it says nothing. */
function userOf(certificate: X509Certificate): Authentication {
  const subject = certificate.toLegacyObject().subject as unknown as Readonly<Record<string, unknown>>;
  const [names, uids] = [texts(subject['CN']), texts(subject[uidName])];
  const [name = ''] = names;
  if (names.length > 1) return failed(certificate, 'it has more than one common name');
  if (uids.length > 1 || uids[0] === '')
    return failed(certificate, 'it must have one UID that is not empty, or none');
  if (name === '') return { kind: 'none' };
  const hash = createHash('sha256').update(certificate.raw).digest('hex');
  const user: User = {
    name,
    uid: uids[0],
    groups: texts(subject['O']),
    extra: { [credentialId]: [`X509SHA256=${hash}`] },
  };
  return { kind: 'user', user };
}

function texts(value: unknown): readonly string[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value.map(String) : [String(value)];
}
