import { describeError, KubelingError, onAbort, type Random } from '../../src/lib/index.ts';
import {
  type CallOptions,
  type GrpcCode,
  GrpcError,
  type MethodType,
} from '../../src/protocols/grpc/index.ts';
import type { CallContext } from './context.ts';
import type { Fault, FaultPlan, SimulatedMethod } from './faults.ts';
import type { Trace } from './trace.ts';
import type { Work } from './work.ts';

export type Handler = (request: never, call: CallContext) => unknown;
export type StreamHandler = (request: never, call: CallContext) => AsyncIterable<unknown>;

export interface CallGateOptions {
  readonly work: Work;
  readonly random: Random;
  readonly trace: Trace;
  readonly faults: () => FaultPlan;
  readonly latencyMs: (step: 'request' | 'answer') => number;
  /** The probability that a request takes effect although its caller aborted it in flight. */
  readonly abandonedEffect: number;
  /**
   * Called for unexpected exceptions in a handler, which are bugs of the simulator or of a test's
   * container script.
   */
  readonly onBug: (method: string, error: unknown) => void;
}

/** The connection of a client; closing it ends its calls. */
export interface Origin {
  closed: boolean;
}

const stalledPullMs = 5 * 60_000;
/**
 * The time after which the connection of an unanswered call without a deadline counts as broken.
 */
const deadConnectionMs = 60_000;

/**
 * All calls to the simulated runtime pass through this gate. It adds latency and faults, and ends a
 * call immediately when its caller aborts, the connection breaks or the runtime is killed, as on a
 * real connection.
 */
export class CallGate {
  readonly #options: CallGateOptions;
  readonly #calls = new Set<Call>();
  #up = true;

  constructor(options: CallGateOptions) {
    this.#options = options;
  }

  get inFlight(): number {
    return this.#calls.size;
  }

  async unary(
    name: SimulatedMethod,
    method: MethodType,
    handler: Handler,
    request: object,
    options: CallOptions,
    origin: Origin,
  ): Promise<unknown> {
    const call = this.#begin(options, origin);
    try {
      const whole = method.request.create(request as never);
      return await call.run(() => this.#carryOut(name, method, handler, whole, call));
    } finally {
      call.end();
    }
  }

  async *stream(
    name: SimulatedMethod,
    method: MethodType,
    handler: StreamHandler,
    request: object,
    options: CallOptions,
    origin: Origin,
  ): AsyncGenerator<unknown> {
    const call = this.#begin(options, origin);
    try {
      const whole = method.request.create(request as never);
      const fault = this.#fault(name, whole);
      await call.run(async () => {
        await this.#beforeEffect({ name, request, fault });
        await this.#travel('request');
      });
      for await (const item of handler(whole, call)) yield method.response.create(item as never);
    } catch (error) {
      throw this.#asAnswer(name, error);
    } finally {
      call.end();
    }
  }

  /** Breaks connections: calls in flight fail, and the runtime aborts their work. */
  disconnect(error: GrpcError, origin?: Origin): void {
    for (const call of this.#calls) {
      if (origin === undefined || call.origin === origin) call.break(error, 'called-off');
    }
  }

  /** Kills the runtime: calls in flight fail, and new calls fail until it is running again. */
  goDown(error: GrpcError): void {
    this.#up = false;
    for (const call of this.#calls) call.break(error, 'frozen');
  }

  comeUp(): void {
    this.#up = true;
  }

  #begin(options: CallOptions, origin: Origin): Call {
    if (options.signal.aborted) throw givenUp(options.signal);
    if (origin.closed) throw new GrpcError('CANCELLED', 'The client was closed');
    if (!this.#up) throw new GrpcError('UNAVAILABLE', 'Cannot connect to the simulated runtime: it is down');
    const call = new Call(options.signal, origin, () => this.#calls.delete(call));
    this.#calls.add(call);
    return call;
  }

  async #carryOut(
    name: SimulatedMethod,
    method: MethodType,
    handler: Handler,
    request: never,
    call: Call,
  ): Promise<unknown> {
    const fault = this.#fault(name, request);
    const requested = { name, request, fault };
    await this.#beforeEffect(requested, () => this.#inBackground(name, handler, request));
    await this.#travel('request');
    // When the caller has aborted, it is random whether the request was already sent.
    if (call.broken && this.#options.random.next() >= this.#options.abandonedEffect) return undefined;
    const response = await this.#answer(name, handler, request, call.broken ? uncalledFor() : call);
    await this.#afterEffect(requested);
    await this.#travel('answer');
    return method.response.create(response as never);
  }

  #fault(name: SimulatedMethod, request: unknown): Fault | undefined {
    const fault = this.#options.faults().call(name, request);
    if (fault !== undefined) this.#options.trace.add({ kind: 'call-fault', method: name, fault: fault.kind });
    return fault;
  }

  async #beforeEffect(asked: Asked, effect?: () => void): Promise<void> {
    const { fault } = asked;
    switch (fault?.kind) {
      case 'delay':
        return await this.#options.work.pause(fault.ms);
      case 'hang':
        return await this.#hang(asked);
      case 'error':
        await this.#travel('request');
        throw new GrpcError(fault.code, fault.message);
      case 'late-effect':
        if (effect !== undefined) this.#options.work.after(fault.ms, effect);
        await this.#travel('request');
        throw lostReply(fault.code);
      default:
    }
  }

  /**
   * Never responds, with two exceptions for calls without a deadline of the caller: the runtime
   * cancels an image pull that makes no progress, and the connection of a hook command without a
   * time limit breaks, because the caller cannot distinguish a hanging call from a long-running
   * command.
   */
  async #hang({ name, request }: Asked): Promise<never> {
    if (name === 'pullImage') {
      await this.#options.work.pause(stalledPullMs);
      throw new GrpcError('UNKNOWN', 'failed to pull and unpack image: context canceled');
    }
    if (name !== 'execSync' || !isUnlimited(request)) return await new Promise<never>(() => {});
    await this.#options.work.pause(deadConnectionMs);
    throw lostReply('UNAVAILABLE');
  }

  async #afterEffect(asked: Asked): Promise<void> {
    const { fault } = asked;
    if (fault?.kind !== 'lost-reply') return;
    if (fault.code === 'none') await this.#hang(asked);
    else throw lostReply(fault.code);
  }

  #travel(step: 'request' | 'answer'): Promise<void> {
    return this.#options.work.pause(this.#options.latencyMs(step));
  }

  #inBackground(name: SimulatedMethod, handler: Handler, request: never): void {
    this.#answer(name, handler, request, uncalledFor()).catch(() => {
      // The caller has already received an error, so the error of the late execution is dropped. If
      // it was an unexpected exception, it was already reported as a bug.
    });
  }

  async #answer(
    name: SimulatedMethod,
    handler: Handler,
    request: never,
    call: CallContext,
  ): Promise<unknown> {
    try {
      return await handler(request, call);
    } catch (error) {
      throw this.#asAnswer(name, error);
    }
  }

  #asAnswer(name: SimulatedMethod, error: unknown): GrpcError {
    if (error instanceof GrpcError) return error;
    this.#options.onBug(name, error);
    return new GrpcError('UNKNOWN', describeError(error), error);
  }
}

interface Asked {
  readonly name: SimulatedMethod;
  readonly request: unknown;
  readonly fault: Fault | undefined;
}

function isUnlimited(request: unknown): boolean {
  return !((request as { readonly timeout?: bigint }).timeout ?? 0n);
}

/** The context for effects without a waiting caller, which are never aborted. */
function uncalledFor(): CallContext {
  return { signal: new AbortController().signal };
}

function lostReply(code: GrpcCode): GrpcError {
  return new GrpcError(
    code,
    code === 'UNAVAILABLE' ? 'error reading from server: EOF' : 'context deadline exceeded',
  );
}

/** The gRPC error of a call that its caller aborted. */
export function givenUp(signal: AbortSignal): GrpcError {
  const reason: unknown = signal.reason;
  const late = reason instanceof KubelingError && reason.kind === 'DeadlineExceeded';
  return new GrpcError(late ? 'DEADLINE_EXCEEDED' : 'CANCELLED', 'The call was cancelled', reason);
}

/** One runtime call in flight. */
class Call implements CallContext {
  readonly origin: Origin;
  readonly #link: Disposable;
  readonly #onEnd: () => void;
  #error: GrpcError | undefined;
  #controller: AbortController | undefined;
  #reject: ((error: GrpcError) => void) | undefined;

  constructor(caller: AbortSignal, origin: Origin, onEnd: () => void) {
    this.origin = origin;
    this.#onEnd = onEnd;
    this.#link = onAbort(caller, () => this.break(givenUp(caller), 'called-off'));
  }

  get broken(): boolean {
    return this.#error !== undefined;
  }

  /** The signal is created on demand, because most handlers return immediately and need none. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#error !== undefined) this.#controller.abort(this.#error);
    return this.#controller.signal;
  }

  /**
   * Settles as the work does, or rejects immediately when the call is aborted or its connection
   * breaks.
   */
  run<T>(work: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#error !== undefined) return reject(this.#error);
      this.#reject = reject;
      work().then(resolve, reject);
    });
  }

  /**
   * Fails the call for its caller. The handler is aborted if `called-off`; if `frozen`, because the
   * runtime was killed, it is not notified and never continues.
   */
  break(error: GrpcError, handler: 'called-off' | 'frozen'): void {
    if (this.#error !== undefined) return;
    this.#error = error;
    this.#reject?.(error);
    if (handler === 'called-off') this.#controller?.abort(error);
  }

  end(): void {
    this.#link[Symbol.dispose]();
    this.#onEnd();
  }
}
