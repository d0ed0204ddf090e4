/**
 * Security of the API: who vouches for whom, who somebody is, and who may do what.
 *
 *     openAuthorities ──> tlsOptions, followCertificates (the server)      keepKubeconfig (admin, node)
 *            ├──> makeTokenDesk, makeSigningDesk (tokens and certificates for others)
 *            └──> makeAuthenticator ──┐
 *     makeAuthorizer (an AccessJudge) ┴──> makeFrontSecurity (asked at each request)
 */
export { auditLine, type Reach } from './audit.ts';
export {
  type Authentication,
  type Authenticator,
  type AuthenticatorDeps,
  anonymousUser,
  makeAuthenticator,
  type Shown,
} from './authenticator.ts';
export {
  Authorities,
  type AuthoritiesOptions,
  adminName,
  openAuthorities,
  type Rotated,
} from './authorities.ts';
export { type AuthorizerDeps, makeAuthorizer } from './authorizer.ts';
export { type AuthorityFiles, MemoryAuthorityFiles, realAuthorityFiles } from './files.ts';
export { type FrontSecurityDeps, makeFrontSecurity } from './front-security.ts';
export { type IssuerPagesDeps, issuerPages } from './issuer-pages.ts';
export type { KubeconfigWish } from './kept-kubeconfig.ts';
export { type KubeconfigContents, kubeconfigText, writeKubeconfig } from './kubeconfig.ts';
export { type Grant, parseGrant, type Role } from './roles.ts';
export { makeSigningDesk } from './signing-desk.ts';
export { followCertificates, tlsOptions } from './tls.ts';
export { defaultIssuer, makeTokenDesk, type TokenDeskOptions } from './token-desk.ts';
export {
  jsonWebKeys,
  openidConfiguration,
  openTokenKeys,
  type TokenKey,
  type TokenKeys,
} from './token-keys.ts';
