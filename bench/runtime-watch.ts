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

/** What happens in the runtime, from containerd's own events: looking on costs the runtime next to nothing. */
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

  /** The times of so many happenings since the last reset, once they are there. */
  async seen(what: Happening, count: number): Promise<readonly Seen[]> {
    const end = performance.now() + limitMs;
    for (;;) {
      const found = this.#seen.filter((each) => each.what === what);
      if (found.length >= count) return found;
      if (performance.now() > end)
        throw new Error(`Waited in vain for ${count} times "${what}": ${found.length}`);
      await this.#next();
    }
  }

  /** Waits until the runtime itself calls the container that was started last running. */
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
