import type { ApiResource, JsonObject } from '../../api/index.ts';
import { KeyedBackoff, type Logger, WorkQueue } from '../../lib/index.ts';
import type { ApiLoop, ObjectChange, World } from '../api/index.ts';
import { type ApiCall, type ResourceEntry, StatusError, type StoredObject } from '../api/index.ts';
import { serverUser } from '../kinds/resources.ts';

export interface KeyedLoopOptions {
  readonly name: string;
  readonly world: World;
  readonly log: Logger;
  /** What has to be looked at because of a change; asked in the midst of it, and must not throw. */
  readonly keysOf: (change: ObjectChange) => Iterable<string>;
  /** What else may ask to look at something. */
  readonly hints?: (ask: (key: string) => void) => Disposable;
  /** All there is to look at when the loop begins. */
  readonly first: () => Iterable<string>;
  /**
   * Looks at one thing and does what it needs. A number asks to look again after so many milliseconds, whatever happens
   * in between. What it throws is told, and tried again later.
   */
  readonly look: (key: string, signal: AbortSignal) => number | undefined | Promise<number | undefined>;
}

const retry = { baseMs: 100, maxMs: 60_000, jitter: 0.1 };
const mostFailing = 1_000;

/** Looks at each thing when something happened to it: never twice at a time, and again where it failed. */
export function keyedLoop(options: KeyedLoopOptions): ApiLoop {
  const loop = new KeyedLoop(options);
  return { name: options.name, run: (signal) => loop.run(signal) };
}

class KeyedLoop {
  readonly #options: KeyedLoopOptions;
  readonly #backoff: KeyedBackoff;

  constructor(options: KeyedLoopOptions) {
    this.#options = options;
    this.#backoff = new KeyedBackoff({ policy: retry, random: options.world.random, capacity: mostFailing });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { world, keysOf, first } = this.#options;
    using queue = new WorkQueue(world.clock);
    using _ = world.onChange((change) => {
      for (const key of keysOf(change)) queue.add(key);
    });
    using _hints = this.#options.hints?.((key) => queue.add(key));
    for (const key of first()) queue.add(key);
    while (!signal.aborted) {
      const key = await queue.next(signal).catch(() => undefined);
      if (key === undefined) return;
      const againMs = await this.#lookAt(key, signal);
      queue.done(key);
      if (againMs !== undefined) queue.add(key, againMs);
    }
  }

  async #lookAt(key: string, signal: AbortSignal): Promise<number | undefined> {
    const { world } = this.#options;
    try {
      if (!world.hasRoom()) await world.whenRoom(signal);
      const againMs = await this.#options.look(key, signal);
      this.#backoff.delete(key);
      return againMs;
    } catch (error) {
      if (signal.aborted) return undefined;
      // Somebody else was faster: what they did is seen at the next look.
      if (!isRefusal(error, 'Conflict'))
        this.#options.log.error(`Cannot do what ${this.#options.name} should`, error, { about: key });
      return this.#backoff.fail(key, { nowMs: world.clock.monotonicMs() });
    }
  }
}

/** Whether something was refused for this reason, such as `NotFound`. */
export function isRefusal(error: unknown, reason: string): boolean {
  return error instanceof StatusError && error.status.reason === reason;
}

/** What the server does by itself goes the way of everybody's calls: admitted, validated, told to who watches. */
export class ServerHand {
  readonly #world: World;
  readonly #entryOf: (resource: ApiResource) => ResourceEntry;

  constructor(world: World, entryOf: (resource: ApiResource) => ResourceEntry) {
    this.#world = world;
    this.#entryOf = entryOf;
  }

  /** One that is there already stays as it is. */
  ensure(resource: ApiResource, namespace: string | undefined, object: NamedObject): void {
    if (this.#world.objects.get(resource, namespace, object.metadata.name) !== undefined) return;
    try {
      this.#call('create', resource, { namespace, name: undefined }, object);
    } catch (error) {
      if (!isRefusal(error, 'AlreadyExists')) throw error;
    }
  }

  /** The object is one that was read: if it is another one by now, this is refused. */
  update(resource: ApiResource, object: StoredObject, subresource?: string): StoredObject {
    const { namespace, name } = object.metadata;
    return this.#call('update', resource, { namespace, name, subresource }, object);
  }

  /** Of one that is gone, or was replaced by another one of its name, there is nothing to delete. */
  delete(resource: ApiResource, { metadata }: StoredObject, options: JsonObject = {}): void {
    const { namespace, name, uid } = metadata;
    try {
      this.#call('delete', resource, { namespace, name }, { ...options, preconditions: { uid } });
    } catch (error) {
      if (!isRefusal(error, 'NotFound') && !isRefusal(error, 'Conflict')) throw error;
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
    return this.#world.carryOut({
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
