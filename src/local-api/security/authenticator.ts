import { createHash, type X509Certificate } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../../lib/index.ts';
import { checkChain, holds, readLeaves, type ValidTime } from '../../protocols/x509/index.ts';
import type { ApiUser } from '../api/index.ts';
import type { TokenIssuer } from '../kinds/index.ts';

/** What a caller shows of itself. */
export interface PresentedCredentials {
  /** Of its connection; `untrusted` is the word of TLS at the handshake, which may be old by now. */
  readonly certificate:
    | { readonly certificate: X509Certificate; readonly untrusted: string | undefined }
    | undefined;
  readonly headers: IncomingHttpHeaders;
}

export type AuthenticationResult =
  | { readonly kind: 'user'; readonly user: ApiUser }
  /** Nothing was shown: a user too, who may hardly do anything. */
  | { readonly kind: 'anonymous'; readonly user: ApiUser }
  /** Something was shown that is worth nothing; `why` is for our log, not for the caller. */
  | { readonly kind: 'refused'; readonly why: string };

export interface Authenticator {
  authenticate(shown: PresentedCredentials): AuthenticationResult;
}

export interface AuthenticatorDeps {
  /** Who vouches for clients, as it is now. */
  readonly authority: () => X509Certificate;
  readonly tokens: Pick<TokenIssuer, 'verify' | 'issuer'>;
  readonly clock: Pick<Clock, 'now'>;
}

export const anonymousUser: ApiUser = { name: 'system:anonymous', groups: ['system:unauthenticated'] };
export const authenticatedGroup = 'system:authenticated';

type CredentialResult = ApiUser | { readonly wrong: string } | undefined;

/** The certificate first, then the token: one that is good is enough, and only if none is one that is bad counts. */
export function createAuthenticator(deps: AuthenticatorDeps): Authenticator {
  const byCertificate = certificateAuthenticator(deps);
  return {
    authenticate({ certificate, headers }) {
      const first = byCertificate(certificate);
      if (first !== undefined && 'name' in first) return { kind: 'user', user: first };
      const second = authenticateToken(headers, deps);
      if (second !== undefined && 'name' in second) return { kind: 'user', user: second };
      const wrong = [first, second].flatMap((found) => (found === undefined ? [] : [found.wrong]));
      return wrong.length > 0
        ? { kind: 'refused', why: wrong.join('; ') }
        : { kind: 'anonymous', user: anonymousUser };
    },
  };
}

interface VerifiedCertificate {
  readonly authority: X509Certificate;
  readonly time: ValidTime;
  readonly user: ApiUser;
}

/** Connections live long, so each request asks again whether the authority of now vouches for it now. */
function certificateAuthenticator({
  authority,
  clock,
}: AuthenticatorDeps): (shown: PresentedCredentials['certificate']) => CredentialResult {
  // By the certificate object, which lives as long as its connection.
  const known = new WeakMap<X509Certificate, VerifiedCertificate>();
  return (shown) => {
    if (shown === undefined) return undefined;
    const { certificate, untrusted } = shown;
    if (untrusted !== undefined) return { wrong: `the certificate is not trusted: ${untrusted}` };
    const [root, nowMs] = [authority(), clock.now()];
    const before = known.get(certificate);
    if (before?.authority === root && holds(before.time, nowMs)) return before.user;
    const verdict = checkChain([certificate], [root], nowMs);
    if (verdict.kind === 'stranger') return { wrong: `the certificate is not trusted: ${verdict.why}` };
    const user = userOfCertificate(certificate);
    if (user !== undefined) known.set(certificate, { authority: root, time: verdict.time, user });
    return user ?? { wrong: 'the certificate has no common name' };
  };
}

/** The common name is the user, the organizations are the groups. */
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
  if (!authenticated || user === undefined) return { wrong: error ?? 'invalid bearer token' };
  const { username: name, groups = [], uid, extra } = user;
  return { name, groups, ...(uid === undefined ? {} : { uid }), ...(extra === undefined ? {} : { extra }) };
}

const protocolPrefix = 'base64url.bearer.authorization.k8s.io.';

/** In its header, or for web sockets of browsers, which can set none, among the protocols. */
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
