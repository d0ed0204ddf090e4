import { Worker } from 'node:worker_threads';
import { abortable } from '../abort.ts';
import type { Clock, Timer } from '../clock.ts';
import { asError, KubelingError } from '../errors.ts';
import type { Tree, TreeResult, WalkReply, WalkRequest } from './messages.ts';

/** The part of a thread that is needed here. */
export interface WalkThread {
  send(request: WalkRequest): void;
  /** Does not wait for it to end: it may be held in the kernel. */
  end(): void;
}

export interface WalkThreadEvents {
  readonly onReply: (reply: WalkReply) => void;
  readonly onEnd: (error: Error) => void;
}

export interface DiskWalkerDeps {
  readonly clock: Clock;
  /** Rejects for a path that leads to a file system which does not answer. */
  readonly check: (path: string, signal: AbortSignal) => Promise<void>;
  readonly start?: ((events: WalkThreadEvents) => WalkThread) | undefined;
}

/** Counts what directories take of their disk, off the main thread, slowly enough not to be felt by others. */
export interface DirectoryUsages {
  /**
   * In the order of the trees. What takes longer than the limit is counted as far as it got. Rejects when the thread that
   * counts dies or does not answer.
   */
  usagesOf(trees: readonly Tree[], limitMs: number, signal: AbortSignal): Promise<readonly TreeResult[]>;
}

interface Waiting {
  readonly resolve: (answers: readonly TreeResult[]) => void;
  readonly reject: (error: Error) => void;
}

/** The thread ends when nobody has asked for so long: it costs some memory to keep and some time to start. */
const idleMs = 30_000;
/** One that has not said anything for so long is held in the kernel: between two files it always answers. */
const unresponsiveMs = 60_000;
/** Threads that are held in the kernel are left there, but not any number of them. */
const maxLost = 2;

/** One thread for all, which is there while it is needed. */
export class DiskWalker implements DirectoryUsages, Disposable {
  readonly #deps: DiskWalkerDeps;
  readonly #waiting = new Map<number, Waiting>();
  #thread: WalkThread | undefined;
  #idle: Timer | undefined;
  #watched: Timer | undefined;
  #hasReplied = false;
  #lastId = 0;
  readonly #lost = new Set<WalkThread>();

  constructor(deps: DiskWalkerDeps) {
    this.#deps = deps;
  }

  /** Whether a thread is there now. */
  get isAwake(): boolean {
    return this.#thread !== undefined;
  }

  async usagesOf(
    trees: readonly Tree[],
    limitMs: number,
    signal: AbortSignal,
  ): Promise<readonly TreeResult[]> {
    const { check } = this.#deps;
    const open = await Promise.all(
      trees.map(({ path }) =>
        check(path, signal).then(
          () => undefined,
          (error: unknown): TreeResult => ({ kind: 'failed', message: asError(error).message }),
        ),
      ),
    );
    signal.throwIfAborted();
    const rest = trees.filter((_tree, index) => open[index] === undefined);
    if (rest.length === 0) return open.filter((answer) => answer !== undefined);
    const answers = [...(await this.#request(rest, limitMs, signal))];
    return open.map((answer) => answer ?? answers.shift() ?? { kind: 'gone' });
  }

  [Symbol.dispose](): void {
    this.#end(new KubelingError('FILE_READ', 'Cannot count files as nobody does so any more'));
  }

  async #request(
    trees: readonly Tree[],
    limitMs: number,
    signal: AbortSignal,
  ): Promise<readonly TreeResult[]> {
    const thread = this.#awake();
    const id = ++this.#lastId;
    const answer = new Promise<readonly TreeResult[]>((resolve, reject) =>
      this.#waiting.set(id, { resolve, reject }),
    );
    thread.send({ do: 'count', id, trees, limitMs });
    this.#watch(thread);
    try {
      return await abortable(answer, signal);
    } catch (error) {
      if (this.#waiting.delete(id)) thread.send({ do: 'stop', id });
      throw error;
    } finally {
      this.#rest();
    }
  }

  /** While somebody waits for it. One that says nothing is left where it is, with all that it was asked. */
  #watch(thread: WalkThread): void {
    if (this.#watched !== undefined) return;
    thread.send({ do: 'ping' });
    this.#watched = this.#deps.clock.timer(unresponsiveMs, () => {
      this.#watched = undefined;
      if (this.#hasReplied) {
        this.#hasReplied = false;
        if (this.#waiting.size > 0) this.#watch(thread);
        return;
      }
      this.#lost.add(thread);
      this.#end(new KubelingError('FILE_READ', 'Cannot count files as a file system does not answer'));
    });
  }

  #awake(): WalkThread {
    this.#idle?.cancel();
    if (this.#thread !== undefined) return this.#thread;
    const { size: lost } = this.#lost;
    if (lost >= maxLost)
      throw new KubelingError('FILE_READ', `Cannot count files as ${lost} threads are held by disks`);
    const { start = startThread } = this.#deps;
    const thread = start({
      onReply: ({ id, results }) => {
        this.#hasReplied = true;
        this.#waiting.get(id)?.resolve(results);
        this.#waiting.delete(id);
      },
      onEnd: (error) => {
        // One that was lost has come out of the kernel after all.
        this.#lost.delete(thread);
        if (this.#thread === thread) this.#end(error);
      },
    });
    this.#thread = thread;
    return thread;
  }

  #rest(): void {
    this.#idle?.cancel();
    if (this.#waiting.size > 0 || this.#thread === undefined) return;
    this.#idle = this.#deps.clock.timer(idleMs, () => this[Symbol.dispose]());
  }

  #end(error: Error): void {
    this.#idle?.cancel();
    this.#watched?.cancel();
    this.#watched = undefined;
    this.#hasReplied = false;
    const thread = this.#thread;
    this.#thread = undefined;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
    thread?.end();
  }
}

/** What it remembers of a tree is bounded; small spaces are collected often and quickly. */
const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 };

function startThread({ onReply, onEnd }: WalkThreadEvents): WalkThread {
  const worker = new Worker(new URL('./thread.ts', import.meta.url), {
    workerData: 'disk-walk',
    name: 'disk-walk',
    resourceLimits,
    execArgv: ['--disable-warning=ExperimentalWarning'],
    trackUnmanagedFds: false,
  });
  // Nobody waits for it to end the process.
  worker.unref();
  worker.on('message', (text: string) => onReply(JSON.parse(text) as WalkReply));
  worker.on('error', onEnd);
  worker.on('exit', (code) => onEnd(new Error(`the thread that counts files ended with code ${code}`)));
  return {
    send: (request) => worker.postMessage(request),
    end: () => void worker.terminate(),
  };
}
