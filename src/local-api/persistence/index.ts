export type { QueueLimits } from './commit-queue.ts';
export type { OpenedStore, StoreStats } from './file-store.ts';
export { storeMetrics } from './file-store.ts';
export type { LogLimits } from './maintenance.ts';
export { openStore, type StoreOptions } from './open-store.ts';
export type { RestoredObject, RestoredStore } from './restore.ts';
export type { SyncLevel } from './worker/messages.ts';
