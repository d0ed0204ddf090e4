import type { ApiObject } from '../client/client.ts';
import type { ObjectRef } from '../client/resource.ts';
import { Reflector, type ReflectorOptions } from './reflector.ts';
import type { Named, ObjectChange } from './store.ts';

export interface ObjectReflectorOptions<T extends ApiObject>
  extends Omit<ReflectorOptions<T>, 'query' | 'isFinal'> {
  readonly ref: Omit<ObjectRef, 'subresource'>;
  /** Whether the object is immutable, for example a secret: it is cached and no longer watched. */
  readonly isFinal?: (object: Named<T>) => boolean;
}

/** Watches of single objects live longer, to reduce the load of the server. */
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
      // A server that ignores selectors would return other objects.
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
   * The object as last known; undefined if there is none or none was received yet: see `hasSynced`.
   */
  get current(): Named<T> | undefined {
    return this.#reflector.get(this.#ref.name, this.#ref.namespace);
  }

  onChange(listener: (change: ObjectChange<Named<T>>) => void): Disposable {
    return this.#reflector.onChange(listener);
  }

  /** Called when it may have changed, and once after the initial read, whether it exists or not. */
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
