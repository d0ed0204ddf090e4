import { type Clock, SingleFlight } from '../lib/index.ts';
import { mayRun, type RuntimePod } from '../pods/index.ts';
import { itemsOf } from './lifecycle-events.ts';
import type { RuntimeLister } from './runtime.ts';

const freshMs = 3_000;

/** The pods that run right now, asked of the runtime at most every few seconds; for housekeeping and /runningpods. */
export class RunningPods {
  readonly #clock: Clock;
  readonly #runtime: Pick<RuntimeLister, 'listPods'>;
  readonly #flights = new SingleFlight<number, readonly RuntimePod[]>();
  #last: { readonly atMs: number; readonly pods: readonly RuntimePod[] } | undefined;
  #asked = 0;

  constructor(clock: Clock, runtime: Pick<RuntimeLister, 'listPods'>) {
    this.#clock = clock;
    this.#runtime = runtime;
  }

  /** At most three seconds old. */
  async get(signal: AbortSignal): Promise<readonly RuntimePod[]> {
    const last = this.#last;
    if (last !== undefined && this.#clock.monotonicMs() - last.atMs < freshMs) return last.pods;
    return await this.#flights.run(this.#asked, (inner) => this.#list(inner), signal);
  }

  /** Asked for after this call. */
  async refresh(signal: AbortSignal): Promise<readonly RuntimePod[]> {
    this.#asked++;
    return await this.#flights.run(this.#asked, (inner) => this.#list(inner), signal);
  }

  async #list(signal: AbortSignal): Promise<readonly RuntimePod[]> {
    const atMs = this.#clock.monotonicMs();
    const pods = (await this.#runtime.listPods(signal)).filter((pod) => itemsOf(pod).some(mayRun));
    if (this.#last === undefined || this.#last.atMs <= atMs) this.#last = { atMs, pods };
    return pods;
  }
}
