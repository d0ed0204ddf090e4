import { createHmac, randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { KubelingError, SingleFlight } from '../../lib/index.ts';
import { bearerProtocolPrefix } from '../../protocols/upgrade/index.ts';
import { isWebSocket, offeredProtocols } from '../../protocols/websocket/index.ts';
import type { Authentication, Authenticator, RequestCaller } from './identity.ts';
import {
  postReview,
  ReviewCache,
  type ReviewDeps,
  type TokenReviewer,
  type TokenReviewResult,
} from './reviews.ts';

export interface TokenWebhookDeps extends ReviewDeps {
  readonly reviewer: TokenReviewer;
  /** Time for which a token review is cached; 0 disables the cache. */
  readonly cacheMs: number;
}

/** Maximum number of token reviews in flight, because any client can cause reviews. */
const maxInFlight = 256;

/**
 * Authenticates clients by a bearer token in a header or a WebSocket subprotocol. The API server
 * reviews the token.
 */
export class TokenWebhook {
  readonly #deps: TokenWebhookDeps;
  /**
   * Random key to hash tokens as cache keys: the cache contains no tokens, and clients cannot
   * choose cache keys.
   */
  readonly #key = randomBytes(32);
  readonly #cache: ReviewCache<TokenReviewResult>;
  readonly #inFlight = new SingleFlight<string, TokenReviewResult>();

  constructor(deps: TokenWebhookDeps) {
    this.#deps = deps;
    this.#cache = new ReviewCache(deps.clock);
  }

  get byHeader(): Authenticator {
    return this.#by(({ headers }) => headerToken(headers));
  }

  get byWebSocket(): Authenticator {
    return this.#by(({ headers }) => webSocketToken(headers));
  }

  #by(readToken: (caller: RequestCaller) => PresentedToken): Authenticator {
    return {
      authenticate: async (caller, signal) => {
        const token = readToken(caller);
        if (token.kind === 'none') return token;
        return token.kind === 'token' ? await this.#authenticate(token.token, signal) : failed(token.why);
      },
    };
  }

  async #authenticate(token: string, signal: AbortSignal): Promise<Authentication> {
    try {
      const { authenticated, user, error } = await this.#review(token, signal);
      if (!authenticated) return failed(error ?? 'the API server does not recognize it');
      return user === undefined || user.name === ''
        ? failed('the API server returned no user for it')
        : { kind: 'user', user };
    } catch (error) {
      signal.throwIfAborted();
      return { kind: 'failed', error };
    }
  }

  async #review(token: string, signal: AbortSignal): Promise<TokenReviewResult> {
    const key = createHmac('sha256', this.#key).update(token).digest('base64');
    const cached = this.#cache.get(key);
    if (cached !== undefined) return cached;
    if (this.#inFlight.size >= maxInFlight) {
      throw new KubelingError('AUTH_FAILED', `Cannot review a token: ${maxInFlight} reviews are in flight`);
    }
    return await this.#inFlight.run(key, (inner) => this.#fetch(key, token, inner), signal);
  }

  async #fetch(key: string, token: string, signal: AbortSignal): Promise<TokenReviewResult> {
    const { reviewer, cacheMs } = this.#deps;
    const post = (inner: AbortSignal) => reviewer.tokenReview(token, inner);
    const response = await postReview('review a token', this.#deps, post, signal);
    // Only a definite result is cached, not an error.
    if (response.authenticated || (response.error ?? '') === '') this.#cache.set(key, response, cacheMs);
    return response;
  }
}

function failed(why: string): Authentication {
  return { kind: 'failed', error: new KubelingError('AUTH_FAILED', `Cannot accept a bearer token: ${why}`) };
}

export type PresentedToken =
  | { readonly kind: 'none' }
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'malformed'; readonly why: string };

const none: PresentedToken = { kind: 'none' };

/** The token of an Authorization header with the scheme Bearer, in any case. */
export function headerToken({ authorization = '' }: IncomingHttpHeaders): PresentedToken {
  const [scheme = '', token = ''] = authorization.trim().split(' ', 2);
  return scheme.toLowerCase() === 'bearer' && token !== '' ? { kind: 'token', token } : none;
}

/**
 * The token among the offered WebSocket subprotocols. The client must offer another subprotocol
 * too, because the server has to select one and must not return the token.
 */
export function webSocketToken(headers: IncomingHttpHeaders): PresentedToken {
  if (!isWebSocket(headers)) return none;
  const offered = offeredProtocols(headers);
  const tokens = offered.filter((each) => each.startsWith(bearerProtocolPrefix));
  const [first, ...more] = tokens;
  if (first === undefined) return none;
  if (more.length > 0) return malformed('only one token may be offered');
  if (offered.length === tokens.length) return malformed('another protocol must be offered beside the token');
  return decodeToken(first.slice(bearerProtocolPrefix.length));
}

function decodeToken(encoded: string): PresentedToken {
  if (!/^[A-Za-z0-9_-]+$/.test(encoded)) return malformed('the token must be base64url without padding');
  const bytes = Buffer.from(encoded, 'base64url');
  const token = bytes.toString();
  if (!Buffer.from(token).equals(bytes)) return malformed('the token must be UTF-8');
  return { kind: 'token', token };
}

function malformed(why: string): PresentedToken {
  return { kind: 'malformed', why };
}
