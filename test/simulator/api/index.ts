export type {
  AccessDecision,
  ApiRequest,
  ApiUser,
  ApiVerb,
  StoreChange,
  StoredMeta,
  StoredObject,
  TokenCheckResult,
} from '../../../src/local-api/api/index.ts';
export { adminUser, bootstrapUser, nodeUser } from '../../fakes/api-users.ts';
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
