export type {
  AccessVerdict,
  StoreChange,
  StoredMeta,
  StoredObject,
  TokenVerdict,
} from '../../../src/local-api/core/index.ts';
export {
  type ApiRequest,
  type ApiUser,
  type ApiVerb,
  adminUser,
  bootstrapUser,
  nodeUser,
} from '../../../src/local-api/core/index.ts';
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
export { type Signer, SimulatedApi, type SimulatedApiOptions } from './simulated-api.ts';
