import type { X509Certificate } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** Somebody who calls, as the API server knows users. */
export interface User {
  readonly name: string;
  readonly uid?: string | undefined;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}

/** The certificate a client showed when it connected. */
export interface PeerCertificate {
  /** The client's own first, then what it sent along or what was found to have signed it. */
  readonly chain: readonly X509Certificate[];
  /** The word of TLS at the handshake; it may be old by now. */
  readonly verdict: { readonly kind: 'trusted' } | { readonly kind: 'untrusted'; readonly why: string };
}

/** A request before anything is known of who sent it; the same for plain requests and for upgrades. */
export interface Caller {
  readonly method: string;
  /** As routes are chosen by. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Undefined when none was shown. */
  readonly certificate: PeerCertificate | undefined;
}

export const anonymousUser: User = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

const authenticatedGroup = 'system:authenticated';

export function withAuthenticatedGroup(user: User): User {
  const isKnown = user.groups.includes(authenticatedGroup);
  const isNobody = user.name === anonymousUser.name || user.groups.includes('system:unauthenticated');
  return isKnown || isNobody ? user : { ...user, groups: [...user.groups, authenticatedGroup] };
}

/** What one way of showing who one is makes of a request. */
export type Authentication =
  | { readonly kind: 'user'; readonly user: User }
  /** Nothing of this kind was shown. */
  | { readonly kind: 'none' }
  /** Something was shown that is not worth anything, or nobody could say whether it is. */
  | { readonly kind: 'failed'; readonly error: unknown };

export interface Authenticator {
  /** Rejects only when the signal is aborted. */
  authenticate(caller: Caller, signal: AbortSignal): Promise<Authentication> | Authentication;
}
