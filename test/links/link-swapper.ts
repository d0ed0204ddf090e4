import { Worker } from 'node:worker_threads';

/**
 * Two names that are exchanged repeatedly. `<directory>/*` stands for all temporary files in the
 * directory.
 */
export type Swap = readonly [string, string];

const script = `
  const { workerData: { swaps, stop } } = require('node:worker_threads');
  const { readdirSync } = require('node:fs');
  const namesOf = (name) => {
    if (!name.endsWith('/*')) return [name];
    const directory = name.slice(0, -1);
    return readdirSync(directory).filter((each) => each.endsWith('.tmp')).map((each) => directory + each);
  };
  const { functions } = process.getBuiltinModule('node:ffi').dlopen('libc.so.6', {
    renameat2: { arguments: ['int32', 'string', 'int32', 'string', 'uint32'], return: 'int32' },
  });
  const [atCwd, exchange] = [-100, 2];
  while (Atomics.load(stop, 0) === 0) {
    for (const [a, b] of swaps)
      for (const each of namesOf(a)) functions.renameat2(atCwd, each, atCwd, b, exchange);
    Atomics.add(stop, 1, 1);
  }`;

/** Exchanges pairs of names in a separate thread as fast as the kernel allows, until disposed. */
export class LinkSwapper implements AsyncDisposable {
  readonly #stop = new Int32Array(new SharedArrayBuffer(8));
  readonly #worker: Worker;

  constructor(swaps: readonly Swap[]) {
    const execArgv = ['--disable-warning=ExperimentalWarning'];
    this.#worker = new Worker(script, { eval: true, execArgv, workerData: { swaps, stop: this.#stop } });
  }

  /** How often the names have been exchanged. */
  get rounds(): number {
    return Atomics.load(this.#stop, 1);
  }

  /** Resolves once the swapping thread is running. */
  async begun(): Promise<void> {
    while (this.rounds === 0) await new Promise((resolve) => setImmediate(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = new Promise((resolve) => this.#worker.once('exit', resolve));
    Atomics.store(this.#stop, 0, 1);
    await ended;
  }
}
