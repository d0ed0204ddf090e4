import type { ApiObject } from '../client/client.ts';
import type { ObjectRef } from '../client/resource.ts';
import { Reflector, type ReflectorOptions } from './reflector.ts';
import type { Named, ObjectChange } from './store.ts';

export interface ObjectReflectorOptions<T extends ApiObject>
  extends Omit<ReflectorOptions<T>, 'query' | 'isFinal'> {
  readonly ref: Omit<ObjectRef, 'subresource'>;
  /** Whether the object can never change, such as an immutable secret: it is kept, and no longer watched. */
  readonly isFinal?: (object: Named<T>) => boolean;
}

/** Many watches of one object each: they live longer, to cost the server less. */
const longWatch = { min: 1_800, max: 3_600 };

/** Keeps one object at hand and follows its changes. All a `Reflector` promises holds of it. */
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
      // A server that does not select would hand out what is not ours.
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

  /** The object as last known; undefined when there is none, or none was seen yet: see `hasSynced`. */
  get current(): Named<T> | undefined {
    return this.#reflector.get(this.#ref.name, this.#ref.namespace);
  }

  onChange(listener: (change: ObjectChange<Named<T>>) => void): Disposable {
    return this.#reflector.onChange(listener);
  }

  /** Whenever it may have changed, and once all there is was taken in since a start, be there an object or none. */
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
