import { type Clock, formatDurationMs, type Logger } from '../lib/index.ts';
import { fullNameOf, type Pod, type PodJournal, type PodUid } from '../pods/index.ts';
import type { BusyWorker } from './pod-workers.ts';

export interface WatchdogDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: PodJournal;
  readonly desiredPods: () => readonly Pod[];
  readonly workers: {
    has(uid: PodUid): boolean;
    busyWorkers(longerThanMs: number): readonly BusyWorker[];
  };
  /** Called after every check with the numbers of stuck pods. */
  readonly observe: (counts: { readonly busy: number; readonly missing: number }) => void;
}

const periodMs = 5_000;
const busyLimitMs = 5 * 60_000;
const missingLimitMs = 30_000;

/**
 * Detects pods whose worker makes no progress, because of a bug or an unresponsive runtime. It only
 * reports them.
 */
export class Watchdog {
  readonly #deps: WatchdogDeps;
  /** The monotonic time since which each desired pod has had no worker. */
  #missing: ReadonlyMap<PodUid, number> = new Map();
  /** The pods that were reported as stuck. */
  #reported: ReadonlySet<PodUid> = new Set();

  constructor(deps: WatchdogDeps) {
    this.#deps = deps;
  }

  /** Checks periodically until the signal is aborted. */
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
      this.#report(uid, name, `its sync (${state}) has taken ${formatDurationMs(Math.trunc(busyMs))} so far`);
    for (const pod of missing)
      this.#report(
        pod.metadata.uid,
        fullNameOf(pod),
        `it is desired, but has had no worker for over ${formatDurationMs(missingLimitMs)}`,
      );
    this.#reportRecovered(
      new Set([...busy.map(({ uid }) => uid), ...missing.map((pod) => pod.metadata.uid)]),
    );
    this.#deps.observe({ busy: busy.length, missing: missing.length });
  }

  #withoutWorker(): readonly Pod[] {
    const { clock, desiredPods, workers } = this.#deps;
    const nowMs = clock.monotonicMs();
    const idle = desiredPods().filter((pod) => !workers.has(pod.metadata.uid));
    const since = ({ metadata: { uid } }: Pod) => this.#missing.get(uid) ?? nowMs;
    const missing = idle.filter((pod) => nowMs - since(pod) > missingLimitMs);
    this.#missing = new Map(idle.map((pod) => [pod.metadata.uid, since(pod)]));
    return missing;
  }

  #report(uid: PodUid, pod: string, message: string): void {
    if (this.#reported.has(uid)) return;
    this.#deps.logger.warn('Pod sync is stuck', { pod, podUid: uid, because: message });
    this.#deps.journal.step(uid, { stage: 'worker', outcome: 'failed', message });
  }

  #reportRecovered(stuck: ReadonlySet<PodUid>): void {
    for (const uid of this.#reported) {
      if (stuck.has(uid)) continue;
      this.#deps.logger.info('Pod sync is no longer stuck', { podUid: uid });
      this.#deps.journal.step(uid, {
        stage: 'worker',
        outcome: 'done',
        message: 'its sync is no longer stuck',
      });
    }
    this.#reported = stuck;
  }
}
