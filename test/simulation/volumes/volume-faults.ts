import { type Clock, KubelingError, type Random } from '../../../src/lib/index.ts';
import { draw } from '../../simulator/fault-rules.ts';
import type { MachinePart, PartStep } from './machine-steps.ts';

/** The probabilities of failures of volume operations on the machine. */
export interface FileRates {
  readonly slow?: number;
  /** The operation fails without effect. */
  readonly refused?: number;
  /** The operation takes effect, but is reported as failed. */
  readonly denied?: number;
  /** The operation does not return before its deadline, and its effect is unknown. */
  readonly hung?: number;
  /** An unmount fails because the volume is in use. */
  readonly busy?: number;
}

type Fault = 'slow' | 'refused' | 'denied' | 'hung' | 'busy';

const slowMs = 3_000;

export interface TroublesOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Called for each operation before it starts. */
  readonly calling: (method: string, path: string) => void;
  /** Called right before an operation changes a path. */
  readonly changing: (method: string, path: string) => void;
  readonly note: (what: string) => void;
}

interface Call {
  readonly part: string;
  readonly method: string;
  readonly step: PartStep;
  readonly args: readonly unknown[];
  readonly act: () => unknown;
}

/** Wraps the volume operations of the machine and injects failures. */
export class MachineTroubles {
  readonly #options: TroublesOptions;
  /** Resources that unfinished programs hold, also across kubelet restarts. */
  readonly #taken = new Set<string>();
  /** Aborts all pending operations when the simulation ends. */
  readonly #gone = new AbortController();
  #rates: FileRates = {};

  constructor(options: TroublesOptions) {
    this.#options = options;
  }

  set(rates: FileRates): void {
    this.#rates = rates;
  }

  /**
   * Ends all pending operations at the end of the simulation; programs that a kubelet has started
   * survive a kubelet restart.
   */
  close(): void {
    this.#gone.abort(new Error('The simulation has ended'));
  }

  around<T extends object>(inner: T, { name: part, steps }: MachinePart<T>): T {
    return new Proxy(inner, {
      get: (target, method) => {
        const value: unknown = Reflect.get(target, method);
        if (typeof value !== 'function' || typeof method !== 'string') return value;
        const act = (...args: readonly unknown[]): unknown => Reflect.apply(value, target, args);
        const step = steps[method as keyof T];
        if (step === undefined) return act;
        return (...args: readonly unknown[]) =>
          this.#take({ part, method, step, args, act: () => act(...args) });
      },
    });
  }

  async #take({ part, method, step, args, act }: Call): Promise<unknown> {
    const path = step.pathOf(args);
    this.#options.calling(`${part} ${method}`, path);
    const taken = step.takes?.(args);
    if (taken !== undefined && this.#taken.has(taken)) throw failed(step, method, path, 'in use');
    if (taken !== undefined) this.#taken.add(taken);
    try {
      return await this.#end({ part, method, step, args, act }, path);
    } finally {
      if (taken !== undefined) this.#taken.delete(taken);
    }
  }

  async #end({ part, method, step, args, act }: Call, path: string): Promise<unknown> {
    const fault = this.#draw(step);
    if (fault !== undefined || part !== 'volume')
      this.#options.note(`${part} ${method} ${path} ${fault ?? ''}`);
    const told = () => {
      this.#options.changing(method, path);
      return act();
    };
    if (fault === 'busy') return fault;
    if (fault === undefined) return await told();
    const signal = args.findLast((arg) => arg instanceof AbortSignal) ?? new AbortController().signal;
    const { clock, random } = this.#options;
    const ms = fault === 'hung' ? (step.deadlineMs ?? 0) : random.next() * slowMs;
    await clock.sleep(ms, AbortSignal.any([signal, this.#gone.signal]));
    if (fault === 'slow') return await told();
    const isDone = fault === 'denied' || (fault === 'hung' && random.next() < 0.5);
    if (isDone) await told();
    throw failed(step, method, path, fault);
  }

  #draw({ deadlineMs, mayBeBusy = false }: PartStep): Fault | undefined {
    const { slow = 0, refused = 0, denied = 0, hung = 0, busy = 0 } = this.#rates;
    if (slow + refused + denied + hung + busy === 0) return undefined;
    return draw<Fault>(this.#options.random, [
      [slow, () => 'slow'],
      [refused, () => 'refused'],
      [denied, () => 'denied'],
      [deadlineMs === undefined ? 0 : hung, () => 'hung'],
      [mayBeBusy ? busy : 0, () => 'busy'],
    ]);
  }
}

function failed({ code }: PartStep, method: string, path: string, why: string): KubelingError {
  return new KubelingError(code, `Cannot ${method} ${path}: simulated failure (${why})`);
}
