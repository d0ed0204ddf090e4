import { estimateSize, type StoredObject } from '../api/stored-object.ts';

/** The approximate memory size of all stored objects, in total and by namespace. */
export class StorageUsage {
  readonly #sizes = new WeakMap<StoredObject, number>();
  readonly #namespaces = new Map<string, number>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  /** The memory size by namespace; cluster-scoped objects count as the namespace undefined. */
  ofNamespace(namespace: string | undefined): number {
    return this.#namespaces.get(namespace ?? '') ?? 0;
  }

  /** The size of an object; a stored object is measured once. */
  sizeOf(object: StoredObject): number {
    return this.#sizes.get(object) ?? estimateSize(object);
  }

  /** Updates the usage when `added` replaces `removed`; either may be absent. */
  replace(removed: StoredObject | undefined, added: StoredObject | undefined): void {
    if (removed !== undefined) this.#count(removed, -this.sizeOf(removed));
    if (added === undefined) return;
    const size = this.sizeOf(added);
    this.#sizes.set(added, size);
    this.#count(added, size);
  }

  #count({ metadata: { namespace = '' } }: StoredObject, bytes: number): void {
    this.#total += bytes;
    const left = (this.#namespaces.get(namespace) ?? 0) + bytes;
    if (left === 0) this.#namespaces.delete(namespace);
    else this.#namespaces.set(namespace, left);
  }
}
