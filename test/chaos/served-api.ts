import { type ChildProcess, fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ServerAnswers, ServerQuestion } from './request-server.ts';

interface Told {
  readonly id: number;
  readonly answer: unknown;
}

/** Runs an embedded API in a separate process, so that its clients do not use its event loop. */
export class ServedApi {
  readonly url: string;
  readonly #directory: string;
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (response: unknown) => void>();
  #lastId = 0;

  private constructor(url: string, directory: string, child: ChildProcess) {
    this.url = url;
    this.#directory = directory;
    this.#child = child;
    child.on('message', ({ id, answer }: Told) => {
      this.#waiting.get(id)?.(answer);
      this.#waiting.delete(id);
    });
  }

  static async start(directory: string): Promise<ServedApi> {
    const script = fileURLToPath(new URL('./request-server.ts', import.meta.url));
    const child = fork(script, [directory], { execArgv: [...process.execArgv, '--expose-gc'] });
    const url = await new Promise<string>((resolve, reject) => {
      child.once('message', ({ answer }: Told) => resolve(String(answer)));
      child.once('exit', (code) => reject(new Error(`The API server exited with ${code}`)));
    });
    return new ServedApi(url, directory, child);
  }

  ask<A extends ServerQuestion['ask']>(ask: A): Promise<ServerAnswers[A]> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      const ended = () => reject(new Error('The API server exited during a request'));
      this.#child.once('exit', ended);
      this.#waiting.set(id, (answer) => {
        this.#child.off('exit', ended);
        resolve(answer as ServerAnswers[A]);
      });
      this.#child.send({ id, ask } satisfies ServerQuestion);
    });
  }

  /** Returns base64 data from the kubeconfig of the API. */
  credential(name: string): string {
    const config = readFileSync(join(this.#directory, 'admin.kubeconfig'), 'utf8');
    const found = new RegExp(`${name}: "?([A-Za-z0-9+/=]+)`).exec(config)?.[1];
    if (found === undefined) throw new Error(`There is no ${name} in the kubeconfig`);
    return Buffer.from(found, 'base64').toString();
  }

  async stop(): Promise<void> {
    const exited = new Promise((resolve) => this.#child.once('exit', resolve));
    await this.ask('stop');
    await exited;
  }

  /** Kills the server after a failure, without waiting for its exit. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }
}
