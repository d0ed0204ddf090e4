export type { QueueLimits } from './commit-queue.ts';
export type { OpenedStore, StoreFigures } from './file-store.ts';
export { storeMetrics } from './file-store.ts';
export type { LogLimits } from './maintenance.ts';
export { openStore, type StoreOptions } from './open-store.ts';
export type { Restored, RestoredObject } from './restore.ts';
export type { Safety } from './worker/messages.ts';
