import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describeError } from '../../src/lib/index.ts';
import { patiently } from './patiently.ts';

export interface PartPlan {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  /** The directory of the process's log, which is also its home and working directory. */
  readonly folder: string;
  /** Whether the process serves requests; an exception counts as no. */
  readonly isHealthy: () => Promise<boolean>;
}

const toldLines = 30;
const endsWithinMs = 20_000;

/**
 * One process of the control plane. It may be stopped and started again; all its runs write to one
 * log file.
 */
export class Part {
  readonly #plan: PartPlan;
  #process: ChildProcess | undefined;

  constructor(plan: PartPlan) {
    this.#plan = plan;
  }

  get log(): string {
    return join(this.#plan.folder, `${this.#plan.name}.log`);
  }

  /**
   * Starts the process and waits until it serves requests; the error of a timeout contains the end
   * of its log.
   */
  async start(): Promise<void> {
    if (this.#isRunning()) return;
    this.#process = this.#spawn();
    let why = 'it answers, but not that it is';
    const look = async () => {
      if (!this.#isRunning()) throw new Error(`Cannot run ${this.#plan.name}: the process has exited`);
      const isHealthy = await this.#plan.isHealthy().catch((error) => {
        why = describeError(error);
        return false;
      });
      return isHealthy ? true : undefined;
    };
    try {
      await patiently(`${this.#plan.name} to be healthy`, look, () => why);
    } catch (error) {
      throw new Error(`${describeError(error)}; the end of its log:\n${await this.lastWords()}`, {
        cause: error,
      });
    }
  }

  /** Sends a signal to the process, kills it if it takes too long, and waits for its exit. */
  async stop(how: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.#process;
    if (child === undefined || !this.#isRunning()) return;
    const gone = new Promise<'gone'>((resolve) => child.once('exit', () => resolve('gone')));
    child.kill(how);
    const waiting = new AbortController();
    const limit = delay(endsWithinMs, 'late', { signal: waiting.signal }).catch(() => 'late');
    if ((await Promise.race([gone, limit])) === 'late') child.kill('SIGKILL');
    await gone;
    waiting.abort();
  }

  async lastWords(): Promise<string> {
    const text = await readFile(this.log, 'utf8').catch(describeError);
    return text.trimEnd().split('\n').slice(-toldLines).join('\n');
  }

  #isRunning(): boolean {
    const child = this.#process;
    return child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
  }

  #spawn(): ChildProcess {
    const { program, args, folder: cwd } = this.#plan;
    const log = openSync(this.log, 'a');
    try {
      const env = { PATH: process.env['PATH'], HOME: cwd };
      // A killed test cannot clean up, so the kernel kills the process when the test exits.
      const command = ['--pdeathsig', 'KILL', '--', program, ...args];
      const child = spawn('setpriv', command, { cwd, env, stdio: ['ignore', log, log] });
      // The error event of a program that cannot be started is ignored: it has no PID, which counts
      // as exited.
      child.on('error', () => {});
      return child;
    } finally {
      closeSync(log);
    }
  }
}
