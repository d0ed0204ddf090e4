import { Worker } from 'node:worker_threads';
import { abortable } from '../abort.ts';
import type { Clock, Timer } from '../clock.ts';
import { asError, KubelingError } from '../errors.ts';
import type { Tree, TreeResult, WalkReply, WalkRequest } from './messages.ts';

/** The part of a worker thread that the disk walker uses. */
export interface WalkThread {
  send(request: WalkRequest): void;
  /** Terminates the thread without waiting for its end, because it may be blocked in the kernel. */
  end(): void;
}

export interface WalkThreadEvents {
  readonly onReply: (reply: WalkReply) => void;
  readonly onEnd: (error: Error) => void;
}

export interface DiskWalkerDeps {
  readonly clock: Clock;
  /** Rejects for a path on an unresponsive file system. */
  readonly check: (path: string, signal: AbortSignal) => Promise<void>;
  readonly start?: ((events: WalkThreadEvents) => WalkThread) | undefined;
}

/**
 * Measures the disk usage of directories in a worker thread, with a limited rate so that other work
 * is not disturbed.
 */
export interface DirectoryUsages {
  /**
   * Measures the trees; the results are in the same order. If a tree takes longer than the limit,
   * its result is incomplete. Rejects when the thread exits or is unresponsive.
   */
  usagesOf(trees: readonly Tree[], limitMs: number, signal: AbortSignal): Promise<readonly TreeResult[]>;
}

interface Waiting {
  readonly resolve: (treeResults: readonly TreeResult[]) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The idle time after which the thread is ended: keeping a thread costs memory, starting one costs
 * time.
 */
const idleMs = 30_000;
/**
 * A thread without a reply for this long is blocked in the kernel: an unblocked thread replies
 * after every file.
 */
const unresponsiveMs = 60_000;
/** The maximum number of threads that are blocked in the kernel and abandoned. */
const maxLost = 2;

/** Measures directories in one thread for all callers, which exists only while it is needed. */
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

  /** Whether a thread exists now. */
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
    if (rest.length === 0) return open.filter((result) => result !== undefined);
    const results = [...(await this.#request(rest, limitMs, signal))];
    return open.map((result) => result ?? results.shift() ?? { kind: 'gone' });
  }

  [Symbol.dispose](): void {
    this.#end(new KubelingError('FILE_READ', 'Cannot count files because the disk walker is closed'));
  }

  async #request(
    trees: readonly Tree[],
    limitMs: number,
    signal: AbortSignal,
  ): Promise<readonly TreeResult[]> {
    const thread = this.#awake();
    const id = ++this.#lastId;
    const response = new Promise<readonly TreeResult[]>((resolve, reject) =>
      this.#waiting.set(id, { resolve, reject }),
    );
    thread.send({ do: 'count', id, trees, limitMs });
    this.#watch(thread);
    try {
      return await abortable(response, signal);
    } catch (error) {
      if (this.#waiting.delete(id)) thread.send({ do: 'stop', id });
      throw error;
    } finally {
      this.#rest();
    }
  }

  /**
   * Pings the thread while a request is in flight. An unresponsive thread is abandoned with all its
   * requests.
   */
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
      this.#end(new KubelingError('FILE_READ', 'Cannot count files because a file system is unresponsive'));
    });
  }

  #awake(): WalkThread {
    this.#idle?.cancel();
    if (this.#thread !== undefined) return this.#thread;
    const { size: lost } = this.#lost;
    if (lost >= maxLost)
      throw new KubelingError('FILE_READ', `Cannot count files because ${lost} threads are blocked by disks`);
    const { start = startThread } = this.#deps;
    const thread = start({
      onReply: ({ id, results }) => {
        this.#hasReplied = true;
        this.#waiting.get(id)?.resolve(results);
        this.#waiting.delete(id);
      },
      onEnd: (error) => {
        // Called when an abandoned thread has exited, because the kernel no longer blocks it.
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

/**
 * Limits the memory of the thread to that of one walk; a small young generation is collected often
 * and quickly.
 */
const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 };

function startThread({ onReply, onEnd }: WalkThreadEvents): WalkThread {
  const worker = new Worker(new URL('./thread.ts', import.meta.url), {
    workerData: 'disk-walk',
    name: 'disk-walk',
    resourceLimits,
    execArgv: ['--disable-warning=ExperimentalWarning'],
    trackUnmanagedFds: false,
  });
  // The thread must not keep the process running.
  worker.unref();
  worker.on('message', (text: string) => onReply(JSON.parse(text) as WalkReply));
  worker.on('error', onEnd);
  worker.on('exit', (code) => onEnd(new Error(`the thread that counts files ended with code ${code}`)));
  return {
    send: (request) => worker.postMessage(request),
    end: () => void worker.terminate(),
  };
}
