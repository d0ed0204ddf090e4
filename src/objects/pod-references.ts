import type { Pod, PodUid } from '../pods/index.ts';
import type { ReferredStore } from './referred-store.ts';

interface Registered {
  readonly namespace: string;
  readonly names: ReadonlySet<string>;
}

/**
 * Tracks which pods refer to which objects of one kind, and reports added and removed references to
 * a store.
 */
export class PodReferences<T> {
  readonly #store: ReferredStore<T>;
  readonly #namesOf: (pod: Pod) => ReadonlySet<string>;
  readonly #pods = new Map<PodUid, Registered>();

  constructor(store: ReferredStore<T>, namesOf: (pod: Pod) => ReadonlySet<string>) {
    this.#store = store;
    this.#namesOf = namesOf;
  }

  /** May be called at every sync: only differences reach the store. */
  register(pod: Pod): void {
    const { uid, namespace } = pod.metadata;
    const before = this.#pods.get(uid)?.names ?? new Set<string>();
    const names = this.#namesOf(pod);
    this.#pods.set(uid, { namespace, names });
    for (const name of names) if (!before.has(name)) this.#store.add({ namespace, name }, uid);
    for (const name of before) if (!names.has(name)) this.#store.remove({ namespace, name }, uid);
  }

  /** Removes what was registered last; does nothing for a pod that is not registered. */
  unregister(uid: PodUid): void {
    const { namespace, names } = this.#pods.get(uid) ?? { namespace: '', names: [] };
    this.#pods.delete(uid);
    for (const name of names) this.#store.remove({ namespace, name }, uid);
  }
}
