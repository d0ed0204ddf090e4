export { apiReviews } from './api-reviews.ts';
export type { StreamVerb } from './authorize.ts';
export { type CaBundle, type CaFile, type ClientCa, ClientCaFile, caFile } from './client-ca.ts';
export type { Gate } from './gate.ts';
export { type GateDeps, type GateSettings, makeGate } from './gate.ts';
export type { Caller, PeerCertificate, User } from './identity.ts';
export type {
  AccessReviewAnswer,
  AccessReviewer,
  AccessReviewSpec,
  TokenReviewAnswer,
  TokenReviewer,
} from './reviews.ts';
