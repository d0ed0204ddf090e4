export { CallCounts, type CallQuery } from './call-counts.ts';
export {
  type ApiCallRule,
  type ApiEventRule,
  type ApiFault,
  type ApiFaultPlan,
  type ApiFaultRates,
  conflictFault,
  noApiFaults,
  type PassingApiEvent,
  type RandomApiFaultOptions,
  randomApiFaults,
  scriptedApiFaults,
  type WatchFault,
} from './faults.ts';
export type { StoreChange } from './object-store.ts';
export {
  type ApiRequest,
  type ApiUser,
  type ApiVerb,
  adminUser,
  bootstrapUser,
  nodeUser,
} from './request.ts';
export type { AccessVerdict, TokenVerdict } from './reviews.ts';
export { type Signer, SimulatedApi, type SimulatedApiOptions } from './simulated-api.ts';
export type { StoredMeta, StoredObject } from './stored-object.ts';
