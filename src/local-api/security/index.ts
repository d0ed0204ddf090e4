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
export { type AuthorizerDeps, makeAuthorizer } from './authorizer.ts';
export { makeSigningDesk } from './certificate-signer.ts';
export { type AuthorityFiles, realAuthorityFiles } from './credential-files.ts';
export { type FrontSecurityDeps, makeFrontSecurity } from './front-security.ts';
export type { KubeconfigWish } from './kubeconfig.ts';
export { type KubeconfigContents, kubeconfigText } from './kubeconfig.ts';
export { type Grant, parseGrant, type Role } from './roles.ts';
export {
  Authorities,
  type AuthoritiesOptions,
  adminName,
  followCertificates,
  openAuthorities,
  type Rotated,
  tlsOptions,
} from './server-credentials.ts';
export { defaultIssuer, makeTokenDesk, type TokenDeskOptions } from './token-issuer.ts';
export {
  type IssuerPagesDeps,
  issuerPages,
  jsonWebKeys,
  openidConfiguration,
  openTokenKeys,
  type TokenKey,
  type TokenKeys,
} from './token-keys.ts';
