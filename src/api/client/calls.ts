import { type Clock, KubelingError, LinkedController, onAbort } from '../../lib/index.ts';
import type { Access } from '../credentials/credentials.ts';
import type { ConnectionPool, WireAnswer, WireRequest } from '../transport/connection-pool.ts';
import { transportError } from '../transport/failures.ts';
import { type RateLimit, RequestRate, RequestSlots } from '../transport/rate-limit.ts';
import type { Transport } from '../transport/transport.ts';
import { type Refusal, readRefusal } from './answers.ts';
import { isApiCode } from './api-error.ts';
import {
  BrokenConnection,
  maxRetries,
  mayRepeatRefused,
  type Repetition,
  repeatAfterBreakMs,
  systemCodeOf,
} from './retry.ts';

/** The rate limit, time limits and concurrency limit of one API client. */
export interface CallLimits {
  readonly rate: RateLimit;
  /** The time limit of one attempt, from the connection to the last byte. */
  readonly tryMs: number;
  /** The time limit of a call with all its attempts, once the rate limiter has admitted it. */
  readonly callMs: number;
  readonly mostInFlight: number;
}

/** The result of one attempt, reported to metrics. */
export interface CallResult {
  readonly verb: string;
  readonly method: WireRequest['method'];
  readonly host: string;
  /** The HTTP status; undefined without a response. */
  readonly status: number | undefined;
  readonly durationMs: number;
}

export interface CallerOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly limits: CallLimits;
  readonly userAgent: string;
  readonly onCall: ((result: CallResult) => void) | undefined;
}

/** A successful response whose body is not read yet. */
export interface SuccessfulResponse {
  readonly message: WireAnswer;
  readonly pool: ConnectionPool;
  readonly access: Access;
}

export interface ClientCall<T> {
  readonly verb: string;
  /** The request, for example "get pods/web". */
  readonly what: string;
  readonly request: WireRequest;
  readonly repetition: Repetition;
  /**
   * `stream` for a watch, whose connection may be shared with other requests; `single` by default.
   */
  readonly response?: 'single' | 'stream';
  /** Reads the response; the signal aborts at the deadline of the attempt. */
  readonly consume: (response: SuccessfulResponse, signal: AbortSignal) => Promise<T>;
}

type Outcome<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly access: Access }
  | { readonly kind: 'broken'; readonly broken: BrokenConnection; readonly error: KubelingError };

/** The retries of a call so far by their cause, and the deadline of the call. */
interface CallAttempts {
  waits: number;
  breaks: number;
  newCredentials: number;
  readonly endsMs: number;
}

/** Sends requests within the limits of one client and retries where that is safe. */
export class RetryingCaller {
  readonly #options: CallerOptions;
  readonly #rate: RequestRate;
  readonly #slots: RequestSlots;

  constructor(options: CallerOptions) {
    this.#options = options;
    this.#rate = new RequestRate(options.limits.rate, options.clock);
    this.#slots = new RequestSlots(options.limits.mostInFlight);
  }

  setRate(rate: RateLimit): void {
    this.#rate.setLimit(rate);
  }

  /**
   * Sends the request. Rejects with API_DEADLINE if the server is too slow, and with the signal's
   * reason when aborted.
   */
  async call<T>(call: ClientCall<T>, signal: AbortSignal): Promise<T> {
    const { transport, limits } = this.#options;
    using scope = new LinkedController(signal);
    using _closing = onAbort(transport.closed, (reason) => scope.abort(reason));
    // The wait for the client's own rate limiter does not count towards the deadline of the call.
    await this.#rate.take(scope.signal);
    using _deadline = this.#deadline(scope, call.what, limits.callMs);
    using _slot = await this.#slots.take(scope.signal);
    return await this.#untilDone(call, scope.signal);
  }

  async #untilDone<T>(call: ClientCall<T>, signal: AbortSignal): Promise<T> {
    const { clock, limits } = this.#options;
    const tries: CallAttempts = {
      waits: 0,
      breaks: 0,
      newCredentials: 0,
      endsMs: clock.monotonicMs() + limits.callMs,
    };
    for (;;) {
      const outcome = await this.#try(call, signal);
      if (outcome.kind === 'done') return outcome.value;
      const waitMs =
        outcome.kind === 'broken'
          ? this.#afterBreak(outcome.broken, call, tries)
          : await this.#afterRefusal(outcome, { call, tries }, signal);
      if (waitMs === undefined || clock.monotonicMs() + waitMs >= tries.endsMs) {
        throw outcome.kind === 'broken' ? outcome.error : outcome.refusal.error;
      }
      await clock.sleep(waitMs, signal);
      await this.#rate.take(signal);
    }
  }

  #afterBreak(
    { code, socket }: BrokenConnection,
    { repetition }: ClientCall<unknown>,
    tries: CallAttempts,
  ): number | undefined {
    return repeatAfterBreakMs({ code, socket, repetition, before: tries.breaks++ });
  }

  async #afterRefusal(
    { refusal, access }: Extract<Outcome<unknown>, { kind: 'refused' }>,
    { call, tries }: { readonly call: ClientCall<unknown>; readonly tries: CallAttempts },
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { status, retryAfterMs } = refusal;
    if (status === 401 && tries.newCredentials++ === 0) {
      return (await this.#options.transport.refused(access, signal)) ? 0 : undefined;
    }
    const may = mayRepeatRefused({ status, retryAfterMs, repetition: call.repetition });
    return may && tries.waits++ < maxRetries ? retryAfterMs : undefined;
  }

  async #try<T>(call: ClientCall<T>, parent: AbortSignal): Promise<Outcome<T>> {
    parent.throwIfAborted();
    using scope = new LinkedController(parent);
    using _deadline = this.#deadline(scope, call.what, this.#options.limits.tryMs);
    const { pool, access } = await this.#options.transport.currentPool(scope.signal);
    try {
      return await this.#exchange(call, { pool, access }, scope.signal);
    } catch (error) {
      // A connection that was closed because of our own abort does not count as broken.
      if (scope.signal.aborted) throw this.#abortReason(scope.signal.reason);
      const broken = brokenBy(error);
      const failure = this.#explain(call.what, { pool, access, cause: broken?.cause ?? error });
      if (broken === undefined) throw failure;
      this.#options.transport.reachability.failed();
      return { kind: 'broken', broken, error: failure };
    }
  }

  async #exchange<T>(
    call: ClientCall<T>,
    { pool, access }: { readonly pool: ConnectionPool; readonly access: Access },
    signal: AbortSignal,
  ): Promise<Outcome<T>> {
    const { clock, userAgent } = this.#options;
    const { authorization } = access;
    const headers = {
      accept: 'application/json',
      'user-agent': userAgent,
      ...call.request.headers,
      ...(authorization === undefined ? {} : { authorization }),
    };
    const request = { ...call.request, headers };
    const message = await this.#timed(call, access, () =>
      call.response === 'stream' ? pool.sendWatch(request, signal) : pool.send(request, signal),
    );
    const status = message.statusCode ?? 0;
    this.#recordReachability(status);
    if (status >= 200 && status < 300) {
      return { kind: 'done', value: await call.consume({ message, pool, access }, signal) };
    }
    return {
      kind: 'refused',
      refusal: await readRefusal(message, { what: call.what, access, clock }, signal),
      access,
    };
  }

  /** A server error (5xx) counts as a failure to reach the server. */
  #recordReachability(status: number): void {
    const { reachability } = this.#options.transport;
    if (status < 500) reachability.succeeded();
    else reachability.failed();
  }

  #abortReason(reason: unknown): unknown {
    if (isApiCode(reason, 'API_DEADLINE')) this.#options.transport.reachability.failed();
    return reason;
  }

  async #timed(
    { verb, request }: ClientCall<unknown>,
    { context }: Access,
    send: () => Promise<WireAnswer>,
  ): Promise<WireAnswer> {
    const { clock, onCall } = this.#options;
    const { method } = request;
    const { host } = context.cluster.server;
    const startMs = clock.monotonicMs();
    const report = (status: number | undefined) =>
      onCall?.({ verb, method, host, status, durationMs: clock.monotonicMs() - startMs });
    try {
      const message = await send();
      report(message.statusCode);
      return message;
    } catch (error) {
      report(undefined);
      throw error;
    }
  }

  /** Adds the request to the error, also when the connection broke after the response began. */
  #explain(
    what: string,
    at: Omit<SuccessfulResponse, 'message'> & { readonly cause: unknown },
  ): KubelingError {
    const { pool, access, cause } = at;
    return transportError({ what, access, cause, peer: pool.peer, now: this.#options.clock.now() });
  }

  #deadline(scope: LinkedController, what: string, ms: number): Disposable {
    return this.#options.clock.timer(ms, () =>
      scope.abort(new KubelingError('API_DEADLINE', `Cannot ${what} within ${ms} ms`)),
    );
  }
}

/**
 * Returns the failure of a broken connection. A connection may also break during a response, when
 * the server has processed the request already.
 */
function brokenBy(error: unknown): BrokenConnection | undefined {
  if (error instanceof BrokenConnection) return error;
  return systemCodeOf(error) === undefined ? undefined : new BrokenConnection(error, 'new');
}
