import type { IncomingMessage } from 'node:http';

/** Receives the events of a watch and returns them in pieces. */
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

  /** Rejects when they do not arrive in time. */
  async next(wanted: number | 'to-the-end', withinMs: number): Promise<readonly unknown[]> {
    const deadline = AbortSignal.timeout(withinMs);
    while (!this.#has(wanted)) {
      if (this.#state === 'ended' || deadline.aborted)
        throw new Error(
          `received ${this.#events.length} events instead of ${wanted}: ${JSON.stringify(this.#events)}`,
        );
      await this.#change(deadline);
    }
    return this.#events.splice(0, wanted === 'to-the-end' ? this.#events.length : wanted);
  }

  close(): void {
    this.#response.destroy();
  }

  #has(wanted: number | 'to-the-end'): boolean {
    return wanted === 'to-the-end' ? this.#state === 'ended' : this.#events.length >= wanted;
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
