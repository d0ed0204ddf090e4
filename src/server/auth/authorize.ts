import { createHash } from 'node:crypto';
import { SingleFlight } from '../../lib/index.ts';
import {
  type AccessReviewer,
  type AccessReviewResult,
  type AccessReviewSpec,
  postReview,
  ReviewCache,
  type ReviewDeps,
} from './reviews.ts';

/** Decides whether a user has access; rejects when that cannot be determined. */
export interface Authorizer {
  authorize(
    spec: AccessReviewSpec,
    request: AuthorizedRequest,
    signal: AbortSignal,
  ): Promise<'allowed' | 'not-allowed'>;
}

/**
 * The request to authorize. The client chooses its path freely, so reviews for very long paths are
 * not cached.
 */
export interface AuthorizedRequest {
  readonly path: string;
}

export const alwaysAllow: Authorizer = { authorize: async () => 'allowed' };

export interface AccessWebhookDeps extends ReviewDeps {
  readonly reviewer: AccessReviewer;
  /** Time for which an allowed review is cached; 0 disables the cache. */
  readonly allowedMs: number;
  readonly deniedMs: number;
}

const maxCachedChars = 10_000;

/** Authorizes through the API server and caches the reviews. */
export class AccessWebhook implements Authorizer {
  readonly #deps: AccessWebhookDeps;
  readonly #cache: ReviewCache<AccessReviewResult>;
  readonly #inFlight = new SingleFlight<string, AccessReviewResult>();

  constructor(deps: AccessWebhookDeps) {
    this.#deps = deps;
    this.#cache = new ReviewCache(deps.clock);
  }

  async authorize(spec: AccessReviewSpec, { path }: AuthorizedRequest, signal: AbortSignal) {
    const key = createHash('sha256').update(JSON.stringify(spec)).digest('base64');
    const review = (inner: AbortSignal) => this.#review(key, spec, path, inner);
    const { allowed, denied = false } =
      this.#cache.get(key) ?? (await this.#inFlight.run(key, review, signal));
    // A review that is both allowed and denied is invalid and counts as denied.
    return allowed && !denied ? 'allowed' : 'not-allowed';
  }

  async #review(
    key: string,
    spec: AccessReviewSpec,
    path: string,
    signal: AbortSignal,
  ): Promise<AccessReviewResult> {
    const { reviewer, allowedMs, deniedMs } = this.#deps;
    const post = (inner: AbortSignal) => reviewer.subjectAccessReview(spec, inner);
    const response = await postReview('review what a user may do', this.#deps, post, signal);
    const isShort = spec.verb.length + spec.name.length + path.length <= maxCachedChars;
    if (isShort) this.#cache.set(key, response, response.allowed ? allowedMs : deniedMs);
    return response;
  }
}

/** The access that a request needs, in terms of the API: a verb on subresources of the node. */
export interface NodeAccess {
  readonly verb: string;
  /** The request is authorized when access to one of these subresources is allowed. */
  readonly subresources: readonly string[];
}

const verbs: Readonly<Record<string, string>> = {
  POST: 'create',
  GET: 'get',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/**
 * Path prefixes with the subresources they need; the first match applies, and a prefix includes all
 * paths below it.
 */
const pathPrefixes: readonly (readonly [string, readonly string[]])[] = [
  ['/pods', ['pods', 'proxy']],
  ['/runningpods', ['pods', 'proxy']],
  ['/healthz', ['healthz', 'proxy']],
  ['/configz', ['configz', 'proxy']],
  ['/stats', ['stats']],
  ['/metrics', ['metrics']],
  ['/logs', ['log']],
  ['/checkpoint', ['checkpoint']],
  ['/statusz', ['statusz']],
  ['/flagz', ['configz']],
];

/**
 * Paths that run a process in a pod: they need more than read access, even when the protocol uses
 * GET.
 */
const running = ['/exec', '/attach', '/run', '/portForward'];

export type StreamVerb = 'always-create' | 'by-method';

export function nodeAccess(method: string, path: string, streams: StreamVerb = 'always-create'): NodeAccess {
  const entry = pathPrefixes.find(([prefix]) => isBelow(path, prefix));
  const creates = streams === 'always-create' && running.some((prefix) => isBelow(path, prefix));
  const verb = creates ? 'create' : Object.hasOwn(verbs, method) ? verbs[method] : undefined;
  return { verb: verb ?? '', subresources: entry?.[1] ?? ['proxy'] };
}

function isBelow(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}
