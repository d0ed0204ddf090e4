import { type Clock, formatDurationMs, type Logger } from '../lib/index.ts';
import { fullNameOf, type Pod, type PodJournal, type PodUid } from '../pods/index.ts';
import type { BusyWorker } from './pod-workers.ts';

export interface WatchdogDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: PodJournal;
  readonly desiredPods: () => readonly Pod[];
  readonly workers: {
    knows(uid: PodUid): boolean;
    busyWorkers(longerThanMs: number): readonly BusyWorker[];
  };
  /** Told after every look. */
  readonly observe: (counts: { readonly busy: number; readonly missing: number }) => void;
}

const periodMs = 5_000;
const busyLimitMs = 5 * 60_000;
const missingLimitMs = 30_000;

/** Notices pods that nobody brings on any more: a bug of ours, or a runtime that never answers. Changes nothing itself. */
export class Watchdog {
  readonly #deps: WatchdogDeps;
  /** Since when each wanted pod is without a worker, by the monotonic clock. */
  #missing: ReadonlyMap<PodUid, number> = new Map();
  /** Of whom it was told. */
  #told: ReadonlySet<PodUid> = new Set();

  constructor(deps: WatchdogDeps) {
    this.#deps = deps;
  }

  /** Looks now and then until the signal ends it. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#deps.clock.sleep(periodMs, signal).catch(() => {});
      if (!signal.aborted) this.check();
    }
  }

  check(): void {
    const busy = this.#deps.workers.busyWorkers(busyLimitMs);
    const missing = this.#withoutWorker();
    for (const { uid, name, busyMs, state } of busy)
      this.#tell(
        uid,
        name,
        `one sync of it, ${state}, has taken ${formatDurationMs(Math.trunc(busyMs))} so far`,
      );
    for (const pod of missing)
      this.#tell(
        pod.metadata.uid,
        fullNameOf(pod),
        `it is wanted, and nobody has worked on it for over ${formatDurationMs(missingLimitMs)}`,
      );
    this.#forgetFreed(new Set([...busy.map(({ uid }) => uid), ...missing.map((pod) => pod.metadata.uid)]));
    this.#deps.observe({ busy: busy.length, missing: missing.length });
  }

  #withoutWorker(): readonly Pod[] {
    const { clock, desiredPods, workers } = this.#deps;
    const nowMs = clock.monotonicMs();
    const idle = desiredPods().filter((pod) => !workers.knows(pod.metadata.uid));
    const since = ({ metadata: { uid } }: Pod) => this.#missing.get(uid) ?? nowMs;
    const missing = idle.filter((pod) => nowMs - since(pod) > missingLimitMs);
    this.#missing = new Map(idle.map((pod) => [pod.metadata.uid, since(pod)]));
    return missing;
  }

  #tell(uid: PodUid, pod: string, message: string): void {
    if (this.#told.has(uid)) return;
    this.#deps.logger.warn('A pod does not get on', { pod, podUid: uid, because: message });
    this.#deps.journal.step(uid, { stage: 'worker', outcome: 'failed', message });
  }

  #forgetFreed(stuck: ReadonlySet<PodUid>): void {
    for (const uid of this.#told) {
      if (stuck.has(uid)) continue;
      this.#deps.logger.info('A pod gets on again', { podUid: uid });
      this.#deps.journal.step(uid, { stage: 'worker', outcome: 'done', message: 'it gets on again' });
    }
    this.#told = stuck;
  }
}
