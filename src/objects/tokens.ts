import { type ApiClient, apiResources } from '../api/index.ts';
import type { MetricRegistry } from '../lib/index.ts';
import {
  allOrAbort,
  Backoff,
  type Clock,
  describeError,
  KubelingError,
  type Logger,
  type Random,
  SingleFlight,
  TypedEvents,
  WorkQueue,
} from '../lib/index.ts';
import type { PodUid } from '../pods/index.ts';
import {
  AccountChecks,
  type IssuedToken,
  issuedToken,
  refreshAtMs,
  type TokenRequest,
  type TokenSpec,
  tokenRequest,
  tokenSpecKey,
} from './token-request.ts';

/** Service account tokens for pods. */
export interface TokenSource {
  /** Returns a token. Throws TOKEN_REQUEST when no valid token is cached and none can be issued. */
  get(spec: TokenSpec, signal: AbortSignal): Promise<IssuedToken>;
  /** Drops the tokens of a pod that was removed. */
  forgetPod(uid: PodUid): void;
}

export interface TokenEvents {
  /** Called when the pod's token was replaced, so that its volumes are written again. */
  'renew-pod': { readonly uid: PodUid };
}

export interface TokensDeps {
  readonly api: Pick<ApiClient, 'get' | 'post'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly observer: TokenObserver;
}

interface Entry {
  readonly spec: TokenSpec;
  readonly backoff: Backoff;
  held: { readonly issued: IssuedToken; readonly refreshAtMs: number } | undefined;
  lastRequestedMs: number;
}

const retryPolicy = { baseMs: 5_000, maxMs: 60_000 };
const retryWorkers = 4;
const purgeMs = 60_000;
/**
 * A token that no caller requests for this time is dropped: pods are synced far more often, so no
 * pod needs the token any more.
 */
const wantedForMs = 10 * 60_000;

/**
 * Requests tokens and caches them while they are valid. A failed request or renewal is retried in
 * the background, and the event `renew-pod` reports a retry that succeeded.
 */
export class Tokens implements TokenSource {
  readonly events: TypedEvents<TokenEvents>;
  readonly #deps: TokensDeps;
  readonly #entries = new Map<string, Entry>();
  readonly #flights = new SingleFlight<Entry, IssuedToken>();
  readonly #retries: WorkQueue;
  readonly #checks: AccountChecks;

  constructor(deps: TokensDeps) {
    this.#deps = deps;
    this.#retries = new WorkQueue(deps.clock);
    this.#checks = new AccountChecks(deps);
    this.events = new TypedEvents((error) => deps.logger.error('Token listener failed', error));
  }

  async get(spec: TokenSpec, signal: AbortSignal): Promise<IssuedToken> {
    const { clock, logger } = this.#deps;
    const entry = this.#entryOf(spec);
    entry.lastRequestedMs = clock.monotonicMs();
    const { held } = entry;
    if (held !== undefined && clock.now() <= held.refreshAtMs) return held.issued;
    try {
      return await this.#flights.run(entry, (inner) => this.#fetch(entry, inner), signal);
    } catch (error) {
      signal.throwIfAborted();
      if (held === undefined) throw failed('failed to fetch token', error);
      if (clock.now() > held.issued.expiresMs) {
        throw failed(`token of ${nameOf(spec)} expired and refresh failed`, error);
      }
      logger.error('Failed to renew token, serving the valid one', error, { of: nameOf(spec) });
      return held.issued;
    }
  }

  forgetPod(uid: PodUid): void {
    for (const [key, { spec }] of this.#entries) if (spec.pod.uid === uid) this.#forget(key);
  }

  /**
   * Records the current UID of a service account: tokens of an earlier account with its name are
   * invalid.
   */
  observeServiceAccount(namespace: string, serviceAccount: string, uid: string): void {
    const stale = [...this.#entries].filter(
      ([, { spec, held }]) =>
        spec.namespace === namespace &&
        spec.serviceAccount === serviceAccount &&
        held?.issued.serviceAccountUid !== undefined &&
        held.issued.serviceAccountUid !== uid,
    );
    for (const [key] of stale) this.#forget(key);
    for (const pod of new Set(stale.map(([, { spec }]) => spec.pod.uid)))
      this.events.emit('renew-pod', { uid: pod });
  }

  /** Retries failed requests and drops expired tokens. */
  async run(signal: AbortSignal): Promise<void> {
    await allOrAbort(async (inner) => {
      const retrying = Array.from({ length: retryWorkers }, () => this.#retry(inner));
      await Promise.all([...retrying, this.#purge(inner), this.#check(inner)]);
    }, signal);
  }

  #entryOf(spec: TokenSpec): Entry {
    const key = tokenSpecKey(spec);
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const entry: Entry = {
      spec,
      backoff: new Backoff(retryPolicy, this.#deps.random),
      held: undefined,
      lastRequestedMs: this.#deps.clock.monotonicMs(),
    };
    this.#entries.set(key, entry);
    return entry;
  }

  async #fetch(entry: Entry, signal: AbortSignal): Promise<IssuedToken> {
    const { spec } = entry;
    try {
      const issued = issuedToken(await this.#request(spec, signal));
      this.#store(entry, issued);
      return issued;
    } catch (error) {
      if (!signal.aborted) this.#failed(entry);
      throw error;
    }
  }

  async #request(spec: TokenSpec, signal: AbortSignal): Promise<TokenRequest> {
    const { namespace, serviceAccount: name } = spec;
    const ref = { resource: apiResources.serviceAccounts, namespace, name, subresource: 'token' };
    return await this.#deps.api.post<TokenRequest>(ref, tokenRequest(spec), signal);
  }

  #store(entry: Entry, issued: IssuedToken): void {
    const { random, observer } = this.#deps;
    const { namespace, serviceAccount } = entry.spec;
    observer.answered('issued');
    entry.held = { issued, refreshAtMs: refreshAtMs(issued, random.next()) };
    entry.backoff.reset();
    this.#retries.forget(tokenSpecKey(entry.spec));
    this.#reportWaiting();
    if (issued.serviceAccountUid === undefined) return;
    this.observeServiceAccount(namespace, serviceAccount, issued.serviceAccountUid);
  }

  #failed(entry: Entry): void {
    const key = tokenSpecKey(entry.spec);
    this.#deps.observer.answered('failed');
    // The time of the next retry is not changed, because repeated calls must not extend the
    // back-off.
    if (!this.#isKnown(entry) || this.#retries.has(key)) return;
    this.#retries.add(key, entry.backoff.fail(this.#deps.clock.monotonicMs()));
    this.#reportWaiting();
  }

  async #retry(signal: AbortSignal): Promise<void> {
    for (;;) {
      const key = await this.#retries.next(signal);
      if (key === undefined) return;
      try {
        await this.#tryAgain(key, signal);
      } finally {
        this.#retries.done(key);
        this.#reportWaiting();
      }
    }
  }

  async #tryAgain(key: string, signal: AbortSignal): Promise<void> {
    const entry = this.#entries.get(key);
    if (entry === undefined || !this.#isRequested(entry)) return;
    try {
      await this.#flights.run(entry, (inner) => this.#fetch(entry, inner), signal);
      if (this.#isKnown(entry)) this.events.emit('renew-pod', { uid: entry.spec.pod.uid });
    } catch (error) {
      signal.throwIfAborted();
      this.#deps.logger.error('Failed to get token, retrying', error, { of: nameOf(entry.spec) });
    }
  }

  async #purge(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#deps.clock.sleep(purgeMs, signal);
      for (const [key, entry] of this.#entries) if (this.#isOver(key, entry)) this.#forget(key);
    }
  }

  /**
   * An expired token whose renewal is being retried is retained until no caller requests it any
   * more.
   */
  #isOver(key: string, entry: Entry): boolean {
    const { clock } = this.#deps;
    if (entry.held !== undefined && clock.now() <= entry.held.issued.expiresMs) return false;
    const isAskedFor = clock.monotonicMs() - entry.lastRequestedMs < purgeMs;
    return !(this.#retries.has(key) ? this.#isRequested(entry) : isAskedFor);
  }

  async #check(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#deps.clock.sleep(purgeMs, signal);
      const specs = Array.from(this.#entries.values(), ({ spec }) => spec);
      await this.#checks.check(specs, (account, uid) => this.observeServiceAccount(...account, uid), signal);
    }
  }

  #isRequested({ lastRequestedMs }: Entry): boolean {
    return this.#deps.clock.monotonicMs() - lastRequestedMs < wantedForMs;
  }

  #isKnown(entry: Entry): boolean {
    return this.#entries.get(tokenSpecKey(entry.spec)) === entry;
  }

  #forget(key: string): void {
    this.#entries.delete(key);
    this.#retries.forget(key);
    this.#reportWaiting();
  }

  #reportWaiting(): void {
    this.#deps.observer.waiting(this.#retries.waiting + this.#retries.inFlight);
  }
}

function nameOf({ namespace, serviceAccount, pod }: TokenSpec): string {
  return `${namespace}/${serviceAccount} for ${pod.name}`;
}

function failed(what: string, cause: unknown): KubelingError {
  return new KubelingError('TOKEN_REQUEST', `${what}: ${describeError(cause)}`, { cause });
}

/** Called after each token request with its result. Never throws. */
export interface TokenObserver {
  answered(result: 'issued' | 'failed'): void;
  /** The number of required tokens whose last request failed. */
  waiting(count: number): void;
}

export function tokenMetrics(registry: MetricRegistry): TokenObserver {
  const requests = registry.counter({
    name: 'kubeling_token_requests_total',
    help: 'Service-account token requests by result.',
    labels: ['result'],
  });
  const overdue = registry.gauge({
    name: 'kubeling_tokens_overdue',
    help: 'Service-account tokens whose last request failed.',
  });
  overdue.with({}).set(0);
  return {
    answered: (result) => requests.with({ result }).inc(),
    waiting: (count) => overdue.with({}).set(count),
  };
}
