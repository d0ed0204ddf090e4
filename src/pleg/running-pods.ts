import { type Clock, SingleFlight } from '../lib/index.ts';
import { mayRun, type RuntimeItem, type RuntimePod } from '../pods/index.ts';
import { itemsOf } from './lifecycle-events.ts';
import type { RuntimeLister } from './runtime-events.ts';

const freshMs = 3_000;

/**
 * Running pods from a listing that is at most a few seconds old; for /runningpods and housekeeping.
 */
export class RunningPods {
  readonly #clock: Clock;
  readonly #runtime: Pick<RuntimeLister, 'listPods'>;
  readonly #flights = new SingleFlight<number, readonly RuntimePod[]>();
  #last: { readonly atMs: number; readonly pods: readonly RuntimePod[] } | undefined;
  #generation = 0;

  constructor(clock: Clock, runtime: Pick<RuntimeLister, 'listPods'>) {
    this.#clock = clock;
    this.#runtime = runtime;
  }

  /** Running containers and sandboxes only, from a listing that is at most three seconds old. */
  async get(signal: AbortSignal): Promise<readonly RuntimePod[]> {
    const last = this.#last;
    const isFresh = last !== undefined && this.#clock.monotonicMs() - last.atMs < freshMs;
    const pods = isFresh
      ? last.pods
      : await this.#flights.run(this.#generation, (inner) => this.#list(inner), signal);
    return pods.map(runningPart).filter((pod) => itemsOf(pod).length > 0);
  }

  /**
   * Lists the pods again and returns all containers of each pod that may have a running container
   * or sandbox.
   */
  async refresh(signal: AbortSignal): Promise<readonly RuntimePod[]> {
    this.#generation++;
    return await this.#flights.run(this.#generation, (inner) => this.#list(inner), signal);
  }

  async #list(signal: AbortSignal): Promise<readonly RuntimePod[]> {
    const atMs = this.#clock.monotonicMs();
    const pods = (await this.#runtime.listPods(signal)).filter((pod) => itemsOf(pod).some(mayRun));
    if (this.#last === undefined || this.#last.atMs <= atMs) this.#last = { atMs, pods };
    return pods;
  }
}

function runningPart(pod: RuntimePod): RuntimePod {
  const runs = ({ state }: RuntimeItem) => state === 'running';
  return { ...pod, sandboxes: pod.sandboxes.filter(runs), containers: pod.containers.filter(runs) };
}
