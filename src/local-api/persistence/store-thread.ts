import { Worker } from 'node:worker_threads';
import { abortable, asError, KubelingError } from '../../lib/index.ts';
import type { CallName, StoreCalls, StoreFailureInfo, StoreReply, StoreResult } from './worker/messages.ts';

/**
 * An error that the store thread has reported; `failure.message` continues a sentence after "as".
 */
export class StoreCallError extends Error {
  readonly failure: StoreFailureInfo;

  constructor(failure: StoreFailureInfo) {
    super(failure.message);
    this.name = 'StoreCallError';
    this.failure = failure;
  }
}

/** The interface for calls to the store thread. */
export interface StoreClient {
  /**
   * Sends a request; requests are executed in order. Rejects with a StoreCallError, or when the
   * thread has exited.
   */
  call<N extends CallName>(
    request: StoreCalls[N]['request'] & { readonly do: N },
    signal: AbortSignal,
  ): Promise<StoreCalls[N]['result']>;
}

interface Waiting {
  readonly resolve: (result: StoreResult) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The memory limits of the thread, which holds one page of objects and one batch of changes at a
 * time; a small young generation is collected quickly. Exceeding them ends the thread, not the
 * process.
 */
const resourceLimits = { maxOldGenerationSizeMb: 48, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 };

/** Runs the SQLite database in a worker thread. */
export class StoreThread implements StoreClient {
  readonly #worker: Worker;
  readonly #pending = new Map<number, Waiting>();
  readonly #onEnd: (error: KubelingError) => void;
  #lastId = 0;
  #ended: KubelingError | undefined;

  /** Starts the thread. `onEnd` is called once, if the thread exits unexpectedly. */
  constructor(onEnd: (error: KubelingError) => void) {
    this.#onEnd = onEnd;
    this.#worker = new Worker(new URL('./worker/entry.ts', import.meta.url), {
      workerData: 'store',
      name: 'store',
      resourceLimits,
      // Process-wide options are inherited by the thread, so only options for threads are set.
      execArgv: ['--disable-warning=ExperimentalWarning'],
      trackUnmanagedFds: false,
    });
    this.#worker.on('message', (reply: StoreReply) => this.#settle(reply));
    this.#worker.on('error', (error) => this.#end(asError(error)));
    this.#worker.on('exit', (code) => this.#end(new Error(`it ended with code ${code}`)));
  }

  /**
   * Calls the store thread. The signal aborts only the waiting for the response, not the request.
   */
  call<N extends CallName>(
    request: StoreCalls[N]['request'] & { readonly do: N },
    signal: AbortSignal,
  ): Promise<StoreCalls[N]['result']> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    const id = ++this.#lastId;
    const result = new Promise<StoreResult>((resolve, reject) => this.#pending.set(id, { resolve, reject }));
    this.#worker.postMessage({ id, request });
    return abortable(result as Promise<StoreCalls[N]['result']>, signal);
  }

  /** Terminates the thread immediately. */
  async terminate(): Promise<void> {
    this.#ended ??= new KubelingError('STORE_ENDED', 'Cannot write to the store as it is closed');
    await this.#worker.terminate();
  }

  #settle(reply: StoreReply): void {
    const waiting = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    if ('result' in reply) waiting?.resolve(reply.result);
    else waiting?.reject(new StoreCallError(reply.failure));
  }

  #end(cause: Error): void {
    const wasRequested = this.#ended !== undefined;
    this.#ended ??= new KubelingError('STORE_ENDED', 'Cannot write to the store as its thread has exited', {
      cause,
    });
    for (const { reject } of this.#pending.values()) reject(this.#ended);
    this.#pending.clear();
    if (!wasRequested) this.#onEnd(this.#ended);
  }
}
