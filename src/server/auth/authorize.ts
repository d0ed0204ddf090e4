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

/** Whether the user is authorized; rejects when that cannot be determined. */
export interface Authorizer {
  authorize(
    spec: AccessReviewSpec,
    request: AuthorizedRequest,
    signal: AbortSignal,
  ): Promise<'allowed' | 'not-allowed'>;
}

/** The parts of a request that callers choose freely. */
export interface AuthorizedRequest {
  readonly path: string;
}

export const alwaysAllow: Authorizer = { authorize: async () => 'allowed' };

export interface AccessWebhookDeps extends ReviewDeps {
  readonly reviewer: AccessReviewer;
  /** How long an allowed and a denied review are cached; 0 disables the cache. */
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
    // Allowed and denied at once is invalid; denied wins.
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
  /** One allowed subresource is enough. */
  readonly subresources: readonly string[];
}

const verbs: Readonly<Record<string, string>> = {
  POST: 'create',
  GET: 'get',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** The first match wins; a path includes everything below it. */
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

/** Running a process in a pod is no read access, whatever method the protocol uses. */
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
