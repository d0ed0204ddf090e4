import type { ChildProcess } from 'node:child_process';
import { patiently } from './patiently.ts';

const askedAgainMs = 2_000;

/** A child process with its input and all its output, including standard error. */
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
    // Writing to a process that has exited fails; this is ignored.
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

  /** The output of the process so far. */
  get out(): string {
    return this.#out;
  }

  say(text: string): void {
    this.#child.stdin?.write(text);
  }

  /** Closes the standard input of the process. */
  close(): void {
    this.#child.stdin?.end();
  }

  /** Waits until the output matches. */
  async says(what: RegExp): Promise<void> {
    await patiently(
      `${what} to be said`,
      async () => (what.test(this.#out) ? true : undefined),
      () => this.#told(),
    );
  }

  /**
   * Repeats the input until the response appears in the output of this process, or of another one
   * attached to the same container: a runtime may forward input to a container before it reads the
   * container's output.
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

  /**
   * Waits until the process has exited by itself; returns its exit code, or the signal that killed
   * it.
   */
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
