import { abortable } from '../../lib/index.ts';
import type { ObjectChange } from '../api/api-types.ts';

/** What keeps changes beyond the life of the process. */
export interface Durability {
  /** Called at once for each change, in the order of versions; must neither wait nor throw. */
  append(change: ObjectChange): void;
  /** All changes up to this version are safe. */
  readonly committed: number;
  /** Whether more may be written before what waits is safe. Who writes much asks again and again. */
  readonly acceptsWrites: boolean;
  /** Resolves when all up to a version is safe; fails with the signal, or when it never will be. */
  whenCommitted(version: number, signal: AbortSignal): Promise<void>;
  /** Told each time more is safe, up to which version; must not throw. */
  onCommitted(told: (version: number) => void): Disposable;
}

/** Resolves when there is room, however long a disk that is full may take; fails with the signal only. */
export async function whenAcceptingWrites(durability: Durability, signal: AbortSignal): Promise<void> {
  while (!durability.acceptsWrites) {
    const { promise, resolve } = Promise.withResolvers<void>();
    using _ = durability.onCommitted(() => resolve());
    await abortable(promise, signal);
  }
}
