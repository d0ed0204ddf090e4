import { createHash } from 'node:crypto';
import { SingleFlight } from '../../lib/index.ts';
import { KeptAnswers } from './kept-answers.ts';
import {
  type AccessReviewAnswer,
  type AccessReviewer,
  type AccessReviewSpec,
  askReview,
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
  readonly #kept: KeptAnswers<AccessReviewAnswer>;
  readonly #asking = new SingleFlight<string, AccessReviewAnswer>();

  constructor(deps: AccessWebhookDeps) {
    this.#deps = deps;
    this.#kept = new KeptAnswers(deps.clock);
  }

  async authorize(spec: AccessReviewSpec, { path }: AuthorizedRequest, signal: AbortSignal) {
    const key = createHash('sha256').update(JSON.stringify(spec)).digest('base64');
    const ask = (inner: AbortSignal) => this.#ask(key, spec, path, inner);
    const { allowed, denied = false } = this.#kept.get(key) ?? (await this.#asking.run(key, ask, signal));
    // Both at once is no answer; the safe half of it counts.
    return allowed && !denied ? 'allowed' : 'not-allowed';
  }

  async #ask(
    key: string,
    spec: AccessReviewSpec,
    path: string,
    signal: AbortSignal,
  ): Promise<AccessReviewAnswer> {
    const { reviewer, allowedMs, deniedMs } = this.#deps;
    const ask = (inner: AbortSignal) => reviewer.subjectAccessReview(spec, inner);
    const answer = await askReview('hear what a user may do', this.#deps, ask, signal);
    const isShort = spec.verb.length + spec.name.length + path.length <= maxKeptChars;
    if (isShort) this.#kept.keep(key, answer, answer.allowed ? allowedMs : deniedMs);
    return answer;
  }
}
