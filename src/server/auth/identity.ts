import type { X509Certificate } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** A user with groups, as in the API server's reviews. */
export interface User {
  readonly name: string;
  readonly uid?: string | undefined;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}

/** The certificate chain that a client presented when it connected. */
export interface PeerCertificate {
  /** The client's certificate, followed by the intermediate certificates. */
  readonly chain: readonly X509Certificate[];
  /** The verification result of the TLS handshake; the client CA bundle may have changed since. */
  readonly verdict: { readonly kind: 'trusted' } | { readonly kind: 'untrusted'; readonly why: string };
}

/** A request before authentication, for plain requests and upgrades alike. */
export interface RequestCaller {
  readonly method: string;
  /** The normalized path, which the router uses too. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The client's certificate; undefined when the client presented none. */
  readonly certificate: PeerCertificate | undefined;
}

export const anonymousUser: User = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

const authenticatedGroup = 'system:authenticated';

export function withAuthenticatedGroup(user: User): User {
  const isKnown = user.groups.includes(authenticatedGroup);
  const isNobody = user.name === anonymousUser.name || user.groups.includes('system:unauthenticated');
  return isKnown || isNobody ? user : { ...user, groups: [...user.groups, authenticatedGroup] };
}

/** The result of one authentication method. */
export type Authentication =
  | { readonly kind: 'user'; readonly user: User }
  /** The client presented no credentials of this kind. */
  | { readonly kind: 'none' }
  /** The credentials are invalid, or could not be verified. */
  | { readonly kind: 'failed'; readonly error: unknown };

export interface Authenticator {
  /** Authenticates the client; rejects only when the signal is aborted. */
  authenticate(caller: RequestCaller, signal: AbortSignal): Promise<Authentication> | Authentication;
}
