import type { ChildProcess } from 'node:child_process';
import { patiently } from './patiently.ts';

const askedAgainMs = 2_000;

/** A process that is talked with: what it is told, and all it says, complaints included. */
export class Conversation implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #closed: Promise<void>;
  #out = '';
  #ended: string | undefined;

  constructor(child: ChildProcess) {
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk) => {
        this.#out += chunk;
      });
    }
    // One that has ended hears nothing more.
    child.stdin?.on('error', () => {});
    this.#closed = new Promise((resolve) => {
      const end = (how: string) => {
        this.#ended ??= how;
        resolve();
      };
      child.once('error', (error) => end(String(error)));
      child.once('close', (code, signal) => end(String(code ?? signal)));
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** All of it so far. */
  get out(): string {
    return this.#out;
  }

  say(text: string): void {
    this.#child.stdin?.write(text);
  }

  /** Nothing more will be said to it. */
  close(): void {
    this.#child.stdin?.end();
  }

  /** Waits until it has said this. */
  async says(what: RegExp): Promise<void> {
    await patiently(
      `${what} to be said`,
      async () => (what.test(this.#out) ? true : undefined),
      () => this.#told(),
    );
  }

  /**
   * Says it until this is answered, to it or to another who hears the same: a runtime may pass on what is typed to a
   * container before it listens to what the container says.
   */
  async asks(text: string, response: RegExp, hears: Conversation = this): Promise<void> {
    let nextMs = 0;
    await patiently(
      `${response} to be answered`,
      async () => {
        if (response.test(hears.out)) return true;
        if (performance.now() < nextMs) return undefined;
        this.say(text);
        nextMs = performance.now() + askedAgainMs;
        return undefined;
      },
      () => this.#told(),
    );
  }

  /** Waits until it has ended by itself; answers its exit code, or the signal that ended it. */
  async ends(): Promise<string> {
    return await patiently(
      'the process to end',
      async () => this.#ended,
      () => this.#told(),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ended === undefined) this.#child.kill('SIGKILL');
    await this.#closed;
  }

  #told(): string {
    return `it said: ${JSON.stringify(this.#out)}; its end: ${this.#ended ?? 'not yet'}`;
  }
}
