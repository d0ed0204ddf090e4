/**
 * The strategies of all kinds except pods.
 *
 *     createKinds(signer, tokens, authorizer) ──┬──> strategies, views ──> the catalogue
 *                                               └──> createControllers(context, ...) ──> prepare
 *                                                    once, then run each controller
 */
export type {
  AccessAuthorizer,
  AccessRules,
  BoundObject,
  CertificateRequestInfo,
  CertificateSigner,
  SigningParameters,
  TokenClaims,
  TokenIssuer,
} from '../api/auth-types.ts';
export type { ControllerDeps, Controllers, ServerEndpoint } from '../controllers/index.ts';
export { createKinds, type KindDeps, type Kinds } from './kinds.ts';
export { serverUser } from './resources.ts';
