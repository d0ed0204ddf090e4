import type { ChildProcess } from 'node:child_process';
import type { ControlPlane } from './control-plane.ts';

/** A `kubectl logs -f` of a pod with its output so far. */
export class FollowedLog implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #closed: Promise<void>;
  readonly #lines: string[] = [];
  #rest = '';
  #complaint = '';
  #ended: string | undefined;

  constructor(plane: ControlPlane, pod: string) {
    this.#child = plane.spawnKubectl('logs', '--follow', pod);
    this.#child.stdout?.setEncoding('utf8').on('data', (chunk) => this.#take(chunk));
    this.#child.stderr?.setEncoding('utf8').on('data', (chunk) => {
      this.#complaint += chunk;
    });
    this.#closed = new Promise((resolve) => {
      this.#child.once('error', (error) => {
        this.#ended = String(error);
        resolve();
      });
      this.#child.once('close', (code, signal) => {
        this.#ended ??= `it ended with ${code ?? signal}: ${this.#complaint}`;
        resolve();
      });
    });
  }

  /** The complete lines of the log in order. */
  get lines(): readonly string[] {
    return this.#lines;
  }

  /** The exit code or signal of kubectl; undefined while it runs. */
  get ended(): string | undefined {
    return this.#ended;
  }

  async end(): Promise<void> {
    if (this.#ended === undefined) this.#child.kill('SIGTERM');
    await this.#closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  #take(chunk: string): void {
    const parts = (this.#rest + chunk).split('\n');
    this.#rest = parts.pop() ?? '';
    this.#lines.push(...parts);
  }
}
