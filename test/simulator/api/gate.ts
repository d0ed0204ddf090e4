import { apiError } from '../../../src/api/index.ts';
import { type Clock, KubelingError, onAbort, type Random } from '../../../src/lib/index.ts';
import { type ApiRequest, describeRequest, type Freshness } from '../../../src/local-api/api/index.ts';
import type { Work } from '../work.ts';
import type { ApiFault, ApiFaultPlan } from './faults.ts';

export interface ApiGateOptions {
  readonly clock: Clock;
  readonly work: Work;
  readonly random: Random;
  readonly faults: () => ApiFaultPlan;
  readonly latencyMs: () => number;
  /** The probability that a request takes effect although its caller aborted it in flight. */
  readonly abandonedEffect: number;
  readonly onCall: (request: ApiRequest) => void;
  readonly onFault: (fault: ApiFault['kind']) => void;
}

/** Whether the server is reachable; if not, connections are refused or no response arrives. */
export type Reachability = 'there' | 'refusing' | 'silent';

const freshest: Freshness = { behind: 0 };

/**
 * All calls to the simulated API server pass through this gate. It adds latency and faults, and
 * ends a call immediately when its caller aborts, its deadline expires or the server stops, as on a
 * real connection.
 */
export class ApiGate {
  readonly #options: ApiGateOptions;
  readonly #calls = new Set<PendingCall>();
  #reachability: Reachability = 'there';
  /**
   * A counter that is incremented when the server is killed, so that its pending operations are
   * dropped.
   */
  #life = 0;

  constructor(options: ApiGateOptions) {
    this.#options = options;
  }

  get inFlight(): number {
    return this.#calls.size;
  }

  get reachability(): Reachability {
    return this.#reachability;
  }

  async call<T>(
    request: ApiRequest,
    effect: (freshness: Freshness) => T,
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<T> {
    signal.throwIfAborted();
    this.#options.onCall(request);
    const call = new PendingCall(request, deadlineMs, this.#options.clock, signal);
    this.#calls.add(call);
    try {
      return await call.run(() => this.#carryOut(request, effect, call));
    } finally {
      call.end();
      this.#calls.delete(call);
    }
  }

  /**
   * Makes the server unavailable: a killed server drops its pending operations; an unreachable one
   * completes them, but the responses are lost.
   */
  goAway(how: 'refusing' | 'silent'): void {
    this.#reachability = how;
    if (how === 'silent') return;
    this.#life++;
    for (const call of this.#calls) call.break(unreachable(call.request));
  }

  comeBack(): void {
    this.#reachability = 'there';
  }

  async #carryOut<T>(
    request: ApiRequest,
    effect: (freshness: Freshness) => T,
    call: PendingCall,
  ): Promise<T> {
    const life = this.#life;
    if (this.#reachability !== 'there') return await this.#nobodyThere(request);
    const fault = this.#fault(request);
    await this.#beforeEffect(request, fault, () => this.#inBackground(effect, life));
    await this.#travel();
    if (this.#life !== life || this.#isUnheard(call)) return await silence();
    const response = effect(fault?.kind === 'stale' ? { behind: fault.versions } : freshest);
    await this.#afterEffect(request, fault);
    await this.#travel();
    return this.reachability === 'silent' ? await silence() : response;
  }

  /**
   * Whether the request was lost: when its caller has aborted, it is random whether the request was
   * already sent.
   */
  #isUnheard(call: PendingCall): boolean {
    const isAlone = call.broken || this.#reachability === 'silent';
    return isAlone && this.#options.random.next() >= this.#options.abandonedEffect;
  }

  async #nobodyThere(request: ApiRequest): Promise<never> {
    if (this.#reachability === 'silent') return await silence();
    await this.#travel();
    throw unreachable(request);
  }

  #fault(request: ApiRequest): ApiFault | undefined {
    const fault = this.#options.faults().call(request);
    if (fault !== undefined) this.#options.onFault(fault.kind);
    return fault;
  }

  async #beforeEffect(request: ApiRequest, fault: ApiFault | undefined, effect: () => void): Promise<void> {
    switch (fault?.kind) {
      case 'delay':
        return await this.#options.work.pause(fault.ms);
      case 'hang':
        return await silence();
      case 'unreachable':
        await this.#travel();
        throw unreachable(request);
      case 'refuse':
        await this.#travel();
        throw refusedBy(request, fault);
      case 'late-effect':
        this.#options.work.after(fault.ms, effect);
        await this.#travel();
        throw brokenCall(request);
      default:
    }
  }

  async #afterEffect(request: ApiRequest, fault: ApiFault | undefined): Promise<void> {
    if (fault?.kind !== 'lost-answer') return;
    if (fault.how === 'silence') await silence();
    throw brokenCall(request);
  }

  #travel(): Promise<void> {
    return this.#options.work.pause(this.#options.latencyMs());
  }

  #inBackground(effect: (freshness: Freshness) => unknown, life: number): void {
    if (this.#life !== life) return;
    try {
      effect(freshest);
    } catch {
      // The caller has already received an error, so the error of the late execution is dropped.
    }
  }
}

/** A response that never arrives: only the caller's deadline or signal ends the call. */
function silence(): Promise<never> {
  return new Promise<never>(() => {});
}

function unreachable(request: ApiRequest): KubelingError {
  return new KubelingError('API_UNAVAILABLE', `Cannot ${describeRequest(request)}: connection refused`);
}

function brokenCall(request: ApiRequest): KubelingError {
  return new KubelingError('API_UNAVAILABLE', `Cannot ${describeRequest(request)}: the connection broke`);
}

function refusedBy(request: ApiRequest, fault: Extract<ApiFault, { kind: 'refuse' }>): Error {
  const { status, reason, message = 'injected', retryAfterMs } = fault;
  return apiError({
    what: describeRequest(request),
    status,
    apiStatus: { code: status, reason, message },
    retryAfterMs,
  });
}

/** One API call in flight. */
class PendingCall {
  readonly request: ApiRequest;
  readonly #links: readonly Disposable[];
  #error: unknown;
  #broken = false;
  #reject: ((error: unknown) => void) | undefined;

  constructor(request: ApiRequest, deadlineMs: number, clock: Clock, signal: AbortSignal) {
    this.request = request;
    const late = () =>
      this.break(
        new KubelingError('API_DEADLINE', `Cannot ${describeRequest(request)} within ${deadlineMs} ms`),
      );
    this.#links = [clock.timer(deadlineMs, late), onAbort(signal, (reason) => this.break(reason))];
  }

  get broken(): boolean {
    return this.#broken;
  }

  /**
   * Settles as the work does, or rejects immediately when the call is aborted or its connection
   * breaks.
   */
  run<T>(work: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#broken) return reject(this.#error);
      this.#reject = reject;
      work().then(resolve, reject);
    });
  }

  break(error: unknown): void {
    if (this.#broken) return;
    this.#broken = true;
    this.#error = error;
    this.#reject?.(error);
  }

  end(): void {
    for (const link of this.#links) link[Symbol.dispose]();
  }
}
