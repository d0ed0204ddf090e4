export type { QueueLimits } from './commit-queue.ts';
export type { LogLimits } from './compaction.ts';
export type { OpenedStore, StoreFigures } from './file-store.ts';
export { openStore, type StoreOptions } from './open-store.ts';
export type { Restored, RestoredObject } from './restore.ts';
export { storeMetrics } from './store-metrics.ts';
export type { Safety } from './worker/messages.ts';
