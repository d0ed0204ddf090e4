import type { IncomingMessage } from 'node:http';

/** Receives the events of a watch and returns them in groups. */
export class WatchEvents {
  readonly #response: IncomingMessage;
  readonly #events: unknown[] = [];
  #rest = '';
  #state: 'open' | 'ended' = 'open';
  #wake: () => void = () => {};

  constructor(response: IncomingMessage) {
    this.#response = response;
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => this.#take(chunk));
    for (const end of ['end', 'close', 'error'] as const) response.on(end, () => this.#end());
  }

  /** Resolves with the expected number of events; rejects when they do not arrive in time. */
  async next(expected: number | 'to-the-end', withinMs: number): Promise<readonly unknown[]> {
    const deadline = AbortSignal.timeout(withinMs);
    while (!this.#has(expected)) {
      if (this.#state === 'ended' || deadline.aborted)
        throw new Error(
          `received ${this.#events.length} events instead of ${expected}: ${JSON.stringify(this.#events)}`,
        );
      await this.#change(deadline);
    }
    return this.#events.splice(0, expected === 'to-the-end' ? this.#events.length : expected);
  }

  close(): void {
    this.#response.destroy();
  }

  #has(expected: number | 'to-the-end'): boolean {
    return expected === 'to-the-end' ? this.#state === 'ended' : this.#events.length >= expected;
  }

  #take(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') this.#events.push(JSON.parse(line));
    this.#wake();
  }

  #end(): void {
    this.#state = 'ended';
    this.#wake();
  }

  #change(deadline: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      deadline.addEventListener('abort', () => resolve(), { once: true });
    });
  }
}
