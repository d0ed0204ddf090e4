import { type Clock, sleepOn, type Timer } from '../../src/lib/clock.ts';

type Method = (...args: readonly unknown[]) => unknown;

/**
 * All outgoing operations of one simulated process. When the process is killed, its calls in flight
 * never return, its timers never fire, and none of its later operations reach the machine.
 */
export class ProcessGate {
  readonly #timers = new Set<Timer>();
  readonly #handles = new Set<Disposable>();
  readonly #streams = new Set<Disposable>();
  readonly #onDeath: () => void;
  #alive = true;
  #fuse: number | undefined;

  constructor(onDeath: () => void) {
    this.#onDeath = onDeath;
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** The number of active timers and file watches. */
  get held(): number {
    return this.#timers.size + this.#handles.size;
  }

  /** Kills the process at the given call or response, counted from now. */
  dieAfter(crossings: number): void {
    this.#fuse = crossings;
  }

  die(): void {
    if (!this.#alive) return;
    this.#alive = false;
    for (const timer of this.#timers) timer.cancel();
    for (const handle of this.#handles) handle[Symbol.dispose]();
    this.#timers.clear();
    this.#handles.clear();
    this.#onDeath();
    for (const stream of this.#streams) stream[Symbol.dispose]();
    this.#streams.clear();
  }

  /** The clock for the simulated process; its timers stop when the process is killed. */
  clock(inner: Clock): Clock {
    const clock: Clock = {
      now: () => inner.now(),
      monotonicMs: () => inner.monotonicMs(),
      stamp: () => inner.stamp(),
      sleep: (ms, signal) => sleepOn(clock, ms, signal),
      timer: (ms, run) => this.#timer(inner, ms, run),
    };
    return clock;
  }

  /**
   * Wraps an object for the simulated process; its calls do not return after the process is killed.
   */
  around<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (inner, name) => {
        const value: unknown = Reflect.get(inner, name);
        if (typeof value !== 'function') return value;
        return (...args: readonly unknown[]) => this.#call(() => (value as Method).apply(inner, [...args]));
      },
    });
  }

  #call(act: () => unknown): unknown {
    this.#burn();
    if (!this.#alive) return new Promise(() => {});
    const response = act();
    if (response instanceof Promise) return this.#answered(response);
    if (isStream(response)) return { [Symbol.asyncIterator]: () => this.#stream(response) };
    if (isHandle(response)) return this.#handle(response);
    return response;
  }

  #answered<T>(response: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const cross = (settle: () => void) => () => {
        this.#burn();
        if (this.#alive) settle();
      };
      response.then(
        (value) => cross(() => resolve(value))(),
        (error) => cross(() => reject(error))(),
      );
    });
  }

  #stream(inner: AsyncIterable<unknown>): AsyncIterator<unknown> {
    const iterator = inner[Symbol.asyncIterator]();
    // A killed process reads nothing more, so the stream is closed to notify its sender.
    const left = {
      [Symbol.dispose]: () => void Promise.resolve(iterator.return?.()).catch(() => {}),
    };
    this.#streams.add(left);
    return {
      next: () => this.#answered(Promise.resolve(iterator.next())),
      return: (value) => {
        this.#streams.delete(left);
        return this.#answered(Promise.resolve(iterator.return?.(value) ?? { done: true, value: undefined }));
      },
    };
  }

  #handle(inner: Disposable): Disposable {
    const handle = {
      [Symbol.dispose]: () => {
        this.#handles.delete(inner);
        inner[Symbol.dispose]();
      },
    };
    this.#handles.add(inner);
    return handle;
  }

  #timer(inner: Clock, ms: number, run: () => void): Timer {
    if (!this.#alive) return { cancel() {}, [Symbol.dispose]() {} };
    const timer = inner.timer(ms, () => {
      this.#timers.delete(timer);
      run();
    });
    this.#timers.add(timer);
    const cancel = () => {
      this.#timers.delete(timer);
      timer.cancel();
    };
    return { cancel, [Symbol.dispose]: cancel };
  }

  #burn(): void {
    if (this.#fuse === undefined || !this.#alive) return;
    this.#fuse--;
    if (this.#fuse <= 0) this.die();
  }
}

function isStream(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

function isHandle(value: unknown): value is Disposable {
  return typeof value === 'object' && value !== null && Symbol.dispose in value;
}
