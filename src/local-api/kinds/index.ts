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
} from '../api/auth-types.ts';
export type { KindLoops, LoopNeeds, OwnService } from '../controllers/index.ts';
export { type KindNeeds, type Kinds, makeKinds } from './kinds.ts';
export { serverUser } from './resources.ts';
