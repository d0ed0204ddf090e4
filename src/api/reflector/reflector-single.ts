import type { ApiObject } from '../client/client.ts';
import type { ObjectRef } from '../client/resource.ts';
import { Reflector, type ReflectorOptions } from './reflector.ts';
import type { Named, ObjectChange } from './store.ts';

export interface ObjectReflectorOptions<T extends ApiObject>
  extends Omit<ReflectorOptions<T>, 'query' | 'isFinal'> {
  readonly ref: Omit<ObjectRef, 'subresource'>;
  /**
   * Returns whether the object is immutable, as a secret may be; it is then cached and no longer
   * watched.
   */
  readonly isFinal?: (object: Named<T>) => boolean;
}

/**
 * The duration of watches of single objects, longer than usual to reduce the load of the server.
 */
const longWatch = { min: 1_800, max: 3_600 };

/** Caches one object and follows its changes, with the guarantees of a `Reflector`. */
export class ObjectReflector<T extends ApiObject> implements AsyncDisposable {
  readonly #ref: ObjectReflectorOptions<T>['ref'];
  readonly #reflector: Reflector<T>;

  constructor(options: ObjectReflectorOptions<T>) {
    const { ref, isFinal, check, ...rest } = options;
    const { resource, namespace, name } = ref;
    this.#ref = ref;
    this.#reflector = new Reflector<T>({
      watchSeconds: longWatch,
      ...rest,
      query: { resource, namespace, fieldSelector: `metadata.name=${name}` },
      // Checks the name, because a server that ignores field selectors would return other objects.
      check: (object) => (object.metadata.name === name ? check?.(object) : `its name is not ${name}`),
      isFinal: (objects) => isFinal !== undefined && objects.length > 0 && objects.every(isFinal),
    });
  }

  get hasSynced(): boolean {
    return this.#reflector.hasSynced;
  }

  get isRunning(): boolean {
    return this.#reflector.isRunning;
  }

  get problem(): string | undefined {
    return this.#reflector.problem;
  }

  /**
   * The last received object; undefined if it does not exist, or before the first read: see
   * `hasSynced`.
   */
  get current(): Named<T> | undefined {
    return this.#reflector.get(this.#ref.name, this.#ref.namespace);
  }

  onChange(listener: (change: ObjectChange<Named<T>>) => void): Disposable {
    return this.#reflector.onChange(listener);
  }

  /**
   * Calls the listener after the initial read, even if the object does not exist, and after every
   * change.
   */
  onSet(listener: (objects: readonly Named<T>[]) => void): Disposable {
    return this.#reflector.onSet(listener);
  }

  waitForSync(signal: AbortSignal): Promise<void> {
    return this.#reflector.waitForSync(signal);
  }

  start(): void {
    this.#reflector.start();
  }

  stop(): Promise<void> {
    return this.#reflector.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reflector[Symbol.asyncDispose]();
  }
}
