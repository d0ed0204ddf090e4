import { Backoff, type Clock, cancelled, HintLatch, LinkedController, type Random } from '../../lib/index.ts';
import type { Pod, PodUid } from '../../pods/index.ts';
import type { CsiVolume } from './csi-request.ts';

export interface CsiUpkeepDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** Answers whether it has to be done again; rejects only when aborted. */
  readonly work: (pod: Pod, volume: CsiVolume, signal: AbortSignal) => Promise<'done' | 'again'>;
}

interface Task {
  readonly controller: LinkedController;
  readonly ended: Promise<void>;
}

const retry = { baseMs: 500, maxMs: 122_000 };
const idleMs = 600_000;

/** What is done to the volumes of pods that run, beside them: a driver that hangs holds up nothing of the pod. */
export class CsiUpkeep {
  readonly #deps: CsiUpkeepDeps;
  /** What was asked for and has not begun; the newest pod wins. */
  readonly #wanted = new Map<PodUid, Map<string, { readonly pod: Pod; readonly volume: CsiVolume }>>();
  readonly #running = new Map<PodUid, Map<string, Task>>();
  readonly #hints: HintLatch;

  constructor(deps: CsiUpkeepDeps) {
    this.#deps = deps;
    this.#hints = new HintLatch(deps.clock);
  }

  /** Neither waits nor fails. */
  want(pod: Pod, volume: CsiVolume): void {
    mapIn(this.#wanted, pod.metadata.uid).set(volume.name, { pod, volume });
    this.#hints.raise();
  }

  /** Nothing is done to volumes of the pod any more once this has settled. */
  async end(uid: PodUid): Promise<void> {
    this.#wanted.delete(uid);
    const tasks = [...(this.#running.get(uid)?.values() ?? [])];
    for (const { controller } of tasks) controller.abort(cancelled('The pod has ended'));
    await Promise.all(tasks.map(({ ended }) => ended));
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      for (;;) {
        await this.#hints.wait(idleMs, signal);
        this.#hints.clear();
        this.#beginAll(signal);
      }
    } finally {
      const tasks = [...this.#running.values()].flatMap((of) => [...of.values()]);
      await Promise.all(tasks.map(({ ended }) => ended));
      if (this.#wanted.size > 0) this.#hints.raise();
    }
  }

  #beginAll(signal: AbortSignal): void {
    for (const [uid, volumes] of [...this.#wanted])
      for (const [name, { pod, volume }] of [...volumes]) {
        if (this.#running.get(uid)?.has(name) === true) continue;
        forgetIn(this.#wanted, uid, name);
        const controller = new LinkedController(signal);
        const ended = this.#work(pod, volume, controller).then(() => {
          forgetIn(this.#running, uid, name);
          if (this.#wanted.get(uid)?.has(name) === true) this.#hints.raise();
        });
        mapIn(this.#running, uid).set(name, { controller, ended });
      }
  }

  async #work(pod: Pod, volume: CsiVolume, controller: LinkedController): Promise<void> {
    const { clock, random, work } = this.#deps;
    const backoff = new Backoff(retry, random);
    using held = controller;
    // Begun only after it is noted as running.
    await Promise.resolve();
    try {
      while ((await work(pod, volume, held.signal)) === 'again') {
        // What is newer than what failed need not wait.
        if (this.#wanted.get(pod.metadata.uid)?.has(volume.name) === true) return;
        await clock.sleep(backoff.fail(clock.monotonicMs()), held.signal);
      }
    } catch {
      // It was aborted: what is asked for again begins again.
    }
  }
}

function mapIn<K, N, V>(maps: Map<K, Map<N, V>>, key: K): Map<N, V> {
  const found = maps.get(key) ?? new Map<N, V>();
  maps.set(key, found);
  return found;
}

function forgetIn<K, N, V>(maps: Map<K, Map<N, V>>, key: K, name: N): void {
  const found = maps.get(key);
  if (found?.delete(name) === true && found.size === 0) maps.delete(key);
}
