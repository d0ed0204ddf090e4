import { createHash, type X509Certificate } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../../lib/index.ts';
import { checkChain, isValidAt, readLeaves, type ValidityPeriod } from '../../protocols/x509/index.ts';
import type { ApiUser } from '../api/index.ts';
import type { TokenIssuer } from '../kinds/index.ts';

/** The credentials that a client has presented with a request. */
export interface PresentedCredentials {
  /**
   * The certificate of the connection; `untrusted` is the result of its verification in the TLS
   * handshake, which may be outdated.
   */
  readonly certificate:
    | { readonly certificate: X509Certificate; readonly untrusted: string | undefined }
    | undefined;
  readonly headers: IncomingHttpHeaders;
}

export type AuthenticationResult =
  | { readonly kind: 'user'; readonly user: ApiUser }
  /** The request has no credentials. */
  | { readonly kind: 'anonymous'; readonly user: ApiUser }
  /** The credentials are invalid; `why` is logged and not sent to the client. */
  | { readonly kind: 'refused'; readonly why: string };

export interface CredentialAuthenticator {
  authenticate(credentials: PresentedCredentials): AuthenticationResult;
}

export interface AuthenticatorDeps {
  /** The current CA certificate. */
  readonly authority: () => X509Certificate;
  readonly tokens: Pick<TokenIssuer, 'verify' | 'issuer'>;
  readonly clock: Pick<Clock, 'now'>;
}

export const anonymousUser: ApiUser = { name: 'system:anonymous', groups: ['system:unauthenticated'] };
export const authenticatedGroup = 'system:authenticated';

type CredentialResult = ApiUser | { readonly problem: string } | undefined;

/** Tries the certificate, then the token. One valid credential suffices. */
export function createAuthenticator(deps: AuthenticatorDeps): CredentialAuthenticator {
  const byCertificate = certificateAuthenticator(deps);
  return {
    authenticate({ certificate, headers }) {
      const first = byCertificate(certificate);
      if (first !== undefined && 'name' in first) return { kind: 'user', user: first };
      const second = authenticateToken(headers, deps);
      if (second !== undefined && 'name' in second) return { kind: 'user', user: second };
      const wrong = [first, second].flatMap((found) => (found === undefined ? [] : [found.problem]));
      return wrong.length > 0
        ? { kind: 'refused', why: wrong.join('; ') }
        : { kind: 'anonymous', user: anonymousUser };
    },
  };
}

interface VerifiedCertificate {
  readonly authority: X509Certificate;
  readonly time: ValidityPeriod;
  readonly user: ApiUser;
}

/**
 * Connections are long-lived, so each request verifies the certificate against the current CA and
 * time.
 */
function certificateAuthenticator({
  authority,
  clock,
}: AuthenticatorDeps): (certificate: PresentedCredentials['certificate']) => CredentialResult {
  // The verified certificates are cached by certificate object, which lives as long as its
  // connection.
  const known = new WeakMap<X509Certificate, VerifiedCertificate>();
  return (shown) => {
    if (shown === undefined) return undefined;
    const { certificate, untrusted } = shown;
    if (untrusted !== undefined) return { problem: `the certificate is not trusted: ${untrusted}` };
    const [root, nowMs] = [authority(), clock.now()];
    const before = known.get(certificate);
    if (before?.authority === root && isValidAt(before.time, nowMs)) return before.user;
    const result = checkChain([certificate], [root], nowMs);
    if (result.kind === 'stranger') return { problem: `the certificate is not trusted: ${result.why}` };
    const user = userOfCertificate(certificate);
    if (user !== undefined) known.set(certificate, { authority: root, time: result.time, user });
    return user ?? { problem: 'the certificate has no common name' };
  };
}

/** The common name is the user name, the organizations are the groups. */
function userOfCertificate(certificate: X509Certificate): ApiUser | undefined {
  const [leaf] = readLeaves(certificate.toString(), 'the certificate of a client');
  if (leaf === undefined || leaf.commonName === '') return undefined;
  const hash = createHash('sha256').update(certificate.raw).digest('hex');
  return {
    name: leaf.commonName,
    groups: [...new Set([...leaf.organizations, authenticatedGroup])],
    extra: { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${hash}`] },
  };
}

function authenticateToken(headers: IncomingHttpHeaders, { tokens }: AuthenticatorDeps): CredentialResult {
  const token = bearerTokenOf(headers);
  if (token === undefined) return undefined;
  const { authenticated, user, error } = tokens.verify(token, [tokens.issuer]);
  if (!authenticated || user === undefined) return { problem: error ?? 'invalid bearer token' };
  const { username: name, groups = [], uid, extra } = user;
  return { name, groups, ...(uid === undefined ? {} : { uid }), ...(extra === undefined ? {} : { extra }) };
}

const protocolPrefix = 'base64url.bearer.authorization.k8s.io.';

/**
 * The token from the Authorization header, or from the WebSocket protocols for browsers, which
 * cannot set headers.
 */
function bearerTokenOf({
  authorization,
  'sec-websocket-protocol': protocols = '',
}: IncomingHttpHeaders): string | undefined {
  const [, header] = /^bearer +(\S+)\s*$/i.exec(authorization ?? '') ?? [];
  if (header !== undefined) return header;
  const offered = protocols.split(',').map((one) => one.trim());
  const coded = offered.find((one) => one.startsWith(protocolPrefix))?.slice(protocolPrefix.length);
  return coded === undefined || coded === '' ? undefined : Buffer.from(coded, 'base64url').toString('utf8');
}
