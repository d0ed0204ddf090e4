export { apiReviews } from './api-reviews.ts';
export type { StreamVerb } from './authorize.ts';
export { type CaBundle, type CaFile, type ClientCa, ClientCaFile, caFile } from './client-ca.ts';
export type { Gate } from './gate.ts';
export { createGate, type GateDeps, type GateSettings } from './gate.ts';
export type { PeerCertificate, RequestCaller, User } from './identity.ts';
export type {
  AccessReviewer,
  AccessReviewResult,
  AccessReviewSpec,
  TokenReviewer,
  TokenReviewResult,
} from './reviews.ts';
