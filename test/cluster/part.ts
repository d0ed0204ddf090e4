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
  /** Where its log goes, and what it has for a home and working directory. */
  readonly folder: string;
  /** Whether it serves; may throw, which counts as no. */
  readonly isHealthy: () => Promise<boolean>;
}

const toldLines = 30;
const endsWithinMs = 20_000;

/** One process of the control plane. It may be started and stopped many times; its log goes on in one file. */
export class Part {
  readonly #plan: PartPlan;
  #process: ChildProcess | undefined;

  constructor(plan: PartPlan) {
    this.#plan = plan;
  }

  get log(): string {
    return join(this.#plan.folder, `${this.#plan.name}.log`);
  }

  /** Starts it and waits until it serves; what it said last is in the error when it does not. */
  async start(): Promise<void> {
    if (this.#isRunning()) return;
    this.#process = this.#spawn();
    let why = 'it answers, but not that it is';
    const look = async () => {
      if (!this.#isRunning()) throw new Error(`Cannot run ${this.#plan.name} as it ended`);
      const isHealthy = await this.#plan.isHealthy().catch((error) => {
        why = describeError(error);
        return false;
      });
      return isHealthy ? true : undefined;
    };
    try {
      await patiently(`${this.#plan.name} to be healthy`, look, () => why);
    } catch (error) {
      throw new Error(`${describeError(error)}; it said last:\n${await this.lastWords()}`, { cause: error });
    }
  }

  /** Ends it, by force when it takes too long, and waits until it is gone. */
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
      // A test that is killed cannot clean up: what it started then goes with it.
      const command = ['--pdeathsig', 'KILL', '--', program, ...args];
      const child = spawn('setpriv', command, { cwd, env, stdio: ['ignore', log, log] });
      // A program that cannot be started has no pid, which counts as ended.
      child.on('error', () => {});
      return child;
    } finally {
      closeSync(log);
    }
  }
}
