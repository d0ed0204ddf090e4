import type { CriClient } from '../src/cri/index.ts';

type Happening = 'start' | 'exit' | 'delete';

interface Seen {
  readonly what: Happening;
  readonly id: string;
  readonly atMs: number;
}

const topics: Readonly<Record<string, Happening>> = {
  '/tasks/start': 'start',
  '/tasks/exit': 'exit',
  '/containers/delete': 'delete',
};
const limitMs = 120_000;

/** Observes the runtime through containerd's own events, which costs the runtime almost nothing. */
export class RuntimeWatch implements Disposable {
  readonly #cri: CriClient;
  readonly #end = new AbortController();
  #seen: Seen[] = [];
  #wake: (() => void) | undefined;

  constructor(cri: CriClient) {
    this.#cri = cri;
    this.#read().catch((error) => {
      if (!this.#end.signal.aborted) console.error(error);
    });
  }

  reset(): void {
    this.#seen = [];
  }

  /**
   * Waits for `count` events of the given type since the last reset, and returns them with their
   * times.
   */
  async seen(what: Happening, count: number): Promise<readonly Seen[]> {
    const end = performance.now() + limitMs;
    for (;;) {
      const found = this.#seen.filter((each) => each.what === what);
      if (found.length >= count) return found;
      if (performance.now() > end)
        throw new Error(`Timed out waiting for ${count} "${what}" events: received ${found.length}`);
      await this.#next();
    }
  }

  /** Waits until CRI reports the most recently started container as running. */
  async lastRuns(): Promise<void> {
    const last = this.#seen.findLast(({ what }) => what === 'start');
    for (;;) {
      const { status } = await this.#cri.containerStatus({ containerId: last?.id ?? '' }, this.#end.signal);
      if (status?.state === 'CONTAINER_RUNNING') return;
    }
  }

  [Symbol.dispose](): void {
    this.#end.abort();
  }

  #next(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, 1_000);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async #read(): Promise<void> {
    for await (const { topic, containerId } of this.#cri.containerdEvents(this.#end.signal)) {
      const what = topics[topic];
      if (what === undefined) continue;
      this.#seen.push({ what, id: containerId, atMs: performance.now() });
      this.#wake?.();
    }
  }
}
