/**
 * Rules of all kinds but pods, and what the server does by itself.
 *
 *     desks (given) ──> makeKinds ──> rules, views ──> the catalogue
 *                           └──> loops(world, ...) ──> prepare once, then run each
 */
export type {
  AccessJudge,
  AccessRules,
  Bearer,
  SigningDesk,
  SigningFacts,
  SigningOrder,
  TokenClaims,
  TokenDesk,
} from './desks.ts';
export { type KindNeeds, type Kinds, makeKinds } from './kinds.ts';
export type { KindLoops, LoopNeeds, OwnService } from './loops/index.ts';
export { serverUser } from './server-user.ts';
