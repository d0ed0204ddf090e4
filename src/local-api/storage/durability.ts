import { abortable } from '../../lib/index.ts';
import type { StoredChange } from '../api/api-types.ts';

/** Persists changes. */
export interface Durability {
  /** Called synchronously for each change, in order of versions; must neither wait nor throw. */
  append(change: StoredChange): void;
  /** All changes up to this version are durable. */
  readonly committed: number;
  /** Whether the write queue accepts more changes. Bulk writers check it before each batch. */
  readonly acceptsWrites: boolean;
  /**
   * Resolves when all changes up to the version are durable; rejects when the signal is aborted or
   * the changes can never be committed.
   */
  whenCommitted(version: number, signal: AbortSignal): Promise<void>;
  /** Called after each commit with the committed version; must not throw. */
  onCommitted(listener: (version: number) => void): Disposable;
}

/**
 * Resolves when writes are accepted again, however long the disk is full; rejects only when the
 * signal is aborted.
 */
export async function whenAcceptingWrites(durability: Durability, signal: AbortSignal): Promise<void> {
  while (!durability.acceptsWrites) {
    const { promise, resolve } = Promise.withResolvers<void>();
    using _ = durability.onCommitted(() => resolve());
    await abortable(promise, signal);
  }
}
