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

/** Whether somebody may; rejects when nobody can say. */
export interface Authorizer {
  authorize(
    spec: AccessReviewSpec,
    request: AuthorizedRequest,
    signal: AbortSignal,
  ): Promise<'allowed' | 'not-allowed'>;
}

/** What callers choose freely of a question. */
export interface AuthorizedRequest {
  readonly path: string;
}

export const alwaysAllow: Authorizer = { authorize: async () => 'allowed' };

export interface AccessWebhookDeps extends ReviewDeps {
  readonly reviewer: AccessReviewer;
  /** How long a yes is good, and a no; 0 for not at all. */
  readonly allowedMs: number;
  readonly deniedMs: number;
}

const maxKeptChars = 10_000;

/** Asks the API server, and remembers what it said for a while. */
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
    const ask = (inner: AbortSignal) => this.#review(key, spec, path, inner);
    const { allowed, denied = false } = this.#cache.get(key) ?? (await this.#inFlight.run(key, ask, signal));
    // Both at once is no answer; the safe half of it counts.
    return allowed && !denied ? 'allowed' : 'not-allowed';
  }

  async #review(
    key: string,
    spec: AccessReviewSpec,
    path: string,
    signal: AbortSignal,
  ): Promise<AccessReviewResult> {
    const { reviewer, allowedMs, deniedMs } = this.#deps;
    const ask = (inner: AbortSignal) => reviewer.subjectAccessReview(spec, inner);
    const answer = await postReview('hear what a user may do', this.#deps, ask, signal);
    const isShort = spec.verb.length + spec.name.length + path.length <= maxKeptChars;
    if (isShort) this.#cache.set(key, answer, answer.allowed ? allowedMs : deniedMs);
    return answer;
  }
}

/** What a request asks for, in the words of the API: a verb on parts of the node. */
export interface NodeAccess {
  readonly verb: string;
  /** To be allowed one of them is enough. */
  readonly subresources: readonly string[];
}

const verbs: Readonly<Record<string, string>> = {
  POST: 'create',
  GET: 'get',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** The first that fits decides; a path takes what is below it too. */
const places: readonly (readonly [string, readonly string[]])[] = [
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

/** What runs something in a pod is no mere reading, whatever method the protocol needs it to be asked for with. */
const running = ['/exec', '/attach', '/run', '/portForward'];

export type StreamVerb = 'always-create' | 'by-method';

export function nodeAccess(method: string, path: string, streams: StreamVerb = 'always-create'): NodeAccess {
  const place = places.find(([prefix]) => isBelow(path, prefix));
  const creates = streams === 'always-create' && running.some((prefix) => isBelow(path, prefix));
  const verb = creates ? 'create' : Object.hasOwn(verbs, method) ? verbs[method] : undefined;
  return { verb: verb ?? '', subresources: place?.[1] ?? ['proxy'] };
}

function isBelow(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}
