import { Worker } from 'node:worker_threads';
import { abortable, asError, KubelingError } from '../../lib/index.ts';
import type { CallName, StoreCalls, StoreFailureInfo, StoreReply, StoreResult } from './worker/messages.ts';

/** What the thread says it could not do; `failure.message` goes on after "as". */
export class StoreCallError extends Error {
  readonly failure: StoreFailureInfo;

  constructor(failure: StoreFailureInfo) {
    super(failure.message);
    this.name = 'StoreCallError';
    this.failure = failure;
  }
}

/** The part of the thread that others need. */
export interface StoreClient {
  /** Done in the order of the calls. Fails with a StoreCallError, or when the thread has ended. */
  call<N extends CallName>(
    request: StoreCalls[N]['request'] & { readonly do: N },
    signal: AbortSignal,
  ): Promise<StoreCalls[N]['answer']>;
}

interface Waiting {
  readonly resolve: (answer: StoreResult) => void;
  readonly reject: (error: Error) => void;
}

/**
 * It holds a page of objects and a batch of changes at a time; small spaces are collected often and quickly. What
 * does not fit ends the thread, not the process.
 */
const resourceLimits = { maxOldGenerationSizeMb: 48, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 };

/** A thread that does what it is asked, until it ends. */
export class StoreThread implements StoreClient {
  readonly #worker: Worker;
  readonly #pending = new Map<number, Waiting>();
  readonly #onEnd: (error: KubelingError) => void;
  #lastId = 0;
  #ended: KubelingError | undefined;

  /** `onEnd` is told once, when the thread has ended without being asked to. */
  constructor(onEnd: (error: KubelingError) => void) {
    this.#onEnd = onEnd;
    this.#worker = new Worker(new URL('./worker/entry.ts', import.meta.url), {
      workerData: 'store',
      name: 'store',
      resourceLimits,
      // Only options for threads: what the process was started with holds for them anyway.
      execArgv: ['--disable-warning=ExperimentalWarning'],
      trackUnmanagedFds: false,
    });
    this.#worker.on('message', (reply: StoreReply) => this.#settle(reply));
    this.#worker.on('error', (error) => this.#end(asError(error)));
    this.#worker.on('exit', (code) => this.#end(new Error(`it ended with code ${code}`)));
  }

  /** The signal gives up waiting; what was asked is done all the same. */
  call<N extends CallName>(
    request: StoreCalls[N]['request'] & { readonly do: N },
    signal: AbortSignal,
  ): Promise<StoreCalls[N]['answer']> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    const id = ++this.#lastId;
    const answer = new Promise<StoreResult>((resolve, reject) => this.#pending.set(id, { resolve, reject }));
    this.#worker.postMessage({ id, request });
    return abortable(answer as Promise<StoreCalls[N]['answer']>, signal);
  }

  /** Ends the thread wherever it is. */
  async terminate(): Promise<void> {
    this.#ended ??= new KubelingError('STORE_ENDED', 'Cannot write to the store as it is closed');
    await this.#worker.terminate();
  }

  #settle(reply: StoreReply): void {
    const waiting = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    if ('answer' in reply) waiting?.resolve(reply.answer);
    else waiting?.reject(new StoreCallError(reply.failure));
  }

  #end(cause: Error): void {
    const wasAsked = this.#ended !== undefined;
    this.#ended ??= new KubelingError('STORE_ENDED', 'Cannot write to the store as its thread has died', {
      cause,
    });
    for (const { reject } of this.#pending.values()) reject(this.#ended);
    this.#pending.clear();
    if (!wasAsked) this.#onEnd(this.#ended);
  }
}
