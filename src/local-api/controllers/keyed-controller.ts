import type { ApiResource, JsonObject } from '../../api/index.ts';
import { KeyedBackoff, type Logger, WorkQueue } from '../../lib/index.ts';
import type { Controller, ServerContext, StoredChange } from '../api/index.ts';
import { type ApiCall, type ResourceEntry, StatusError, type StoredObject } from '../api/index.ts';
import { serverUser } from '../kinds/resources.ts';

export interface KeyedControllerOptions {
  readonly name: string;
  readonly context: ServerContext;
  readonly log: Logger;
  /**
   * Returns the keys to reconcile after a change; called synchronously with the change and must not
   * throw.
   */
  readonly keysFor: (change: StoredChange) => Iterable<string>;
  /** Registers further triggers that enqueue keys. */
  readonly hints?: (enqueue: (key: string) => void) => Disposable;
  /** Returns the keys to reconcile at start. */
  readonly initialKeys: () => Iterable<string>;
  /**
   * Reconciles one key. A returned number requests another reconcile after that many milliseconds.
   * Errors are logged and retried with a back-off.
   */
  readonly reconcile: (key: string, signal: AbortSignal) => number | undefined | Promise<number | undefined>;
}

const retry = { baseMs: 100, maxMs: 60_000, jitter: 0.1 };
const maxFailing = 1_000;

/**
 * A controller that reconciles each key after a change: never concurrently for one key, and with a
 * back-off after failures.
 */
export function keyedController(options: KeyedControllerOptions): Controller {
  const loop = new KeyedController(options);
  return { name: options.name, run: (signal) => loop.run(signal) };
}

class KeyedController {
  readonly #options: KeyedControllerOptions;
  readonly #backoff: KeyedBackoff;

  constructor(options: KeyedControllerOptions) {
    this.#options = options;
    this.#backoff = new KeyedBackoff({ policy: retry, random: options.context.random, capacity: maxFailing });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { context, keysFor, initialKeys } = this.#options;
    using queue = new WorkQueue(context.clock);
    using _ = context.onChange((change) => {
      for (const key of keysFor(change)) queue.add(key);
    });
    using _hints = this.#options.hints?.((key) => queue.add(key));
    for (const key of initialKeys()) queue.add(key);
    while (!signal.aborted) {
      const key = await queue.next(signal).catch(() => undefined);
      if (key === undefined) return;
      const againMs = await this.#reconcile(key, signal);
      queue.done(key);
      if (againMs !== undefined) queue.add(key, againMs);
    }
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<number | undefined> {
    const { context } = this.#options;
    try {
      if (!context.acceptsWrites()) await context.whenAcceptingWrites(signal);
      const againMs = await this.#options.reconcile(key, signal);
      this.#backoff.delete(key);
      return againMs;
    } catch (error) {
      if (signal.aborted) return undefined;
      // Conflict means that another writer has changed the object first; the retry reads the new
      // object.
      if (!hasReason(error, 'Conflict'))
        this.#options.log.error(`Failed to reconcile`, error, { about: key });
      return this.#backoff.fail(key, { nowMs: context.clock.monotonicMs() });
    }
  }
}

/** Whether a StatusError has this reason, such as `NotFound`. */
function hasReason(error: unknown, reason: string): boolean {
  return error instanceof StatusError && error.status.reason === reason;
}

/**
 * Writes objects on behalf of the API server, through the same admission and validation as client
 * requests.
 */
export class ControllerClient {
  readonly #context: ServerContext;
  readonly #entryOf: (resource: ApiResource) => ResourceEntry;

  constructor(context: ServerContext, entryOf: (resource: ApiResource) => ResourceEntry) {
    this.#context = context;
    this.#entryOf = entryOf;
  }

  /** Creates the object if it does not exist. */
  ensure(resource: ApiResource, namespace: string | undefined, object: NamedObject): void {
    if (this.#context.objects.get(resource, namespace, object.metadata.name) !== undefined) return;
    try {
      this.#call('create', resource, { namespace, name: undefined }, object);
    } catch (error) {
      if (!hasReason(error, 'AlreadyExists')) throw error;
    }
  }

  /** Updates the object; fails with Conflict if it has changed since it was read. */
  update(resource: ApiResource, object: StoredObject, subresource?: string): StoredObject {
    const { namespace, name } = object.metadata;
    return this.#call('update', resource, { namespace, name, subresource }, object);
  }

  /**
   * Deletes the object; succeeds if it is already deleted or was replaced by another of the same
   * name.
   */
  delete(resource: ApiResource, { metadata }: StoredObject, options: JsonObject = {}): void {
    const { namespace, name, uid } = metadata;
    try {
      this.#call('delete', resource, { namespace, name }, { ...options, preconditions: { uid } });
    } catch (error) {
      if (!hasReason(error, 'NotFound') && !hasReason(error, 'Conflict')) throw error;
    }
  }

  #call(
    verb: ApiCall['verb'],
    resource: ApiResource,
    target: {
      readonly namespace: string | undefined;
      readonly name: string | undefined;
      readonly subresource?: string | undefined;
    },
    body: JsonObject,
  ): StoredObject {
    const { namespace, name, subresource } = target;
    return this.#context.execute({
      user: serverUser,
      verb,
      entry: this.#entryOf(resource),
      namespace,
      name,
      subresource,
      query: new URLSearchParams(),
      body,
      patch: undefined,
      dryRun: false,
      warn: () => {},
    });
  }
}

export interface NamedObject extends JsonObject {
  readonly metadata: JsonObject & { readonly name: string };
}
