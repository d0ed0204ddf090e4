/**
 * Security of the API server: credentials, authentication and authorization.
 *
 *     openServerCredentials ──> tlsOptions and followCertificates (the HTTPS server)
 *            │              ──> maintainKubeconfig (admin and node)
 *            ├──> createTokenIssuer, createCertificateSigner
 *            └──> createAuthenticator ─────┐
 *     createAuthorizer (an Authorizer) ────┴──> createRequestSecurity (for each request)
 */
export { type AuditEvent, logAuditEvent } from './audit.ts';
export {
  type AuthenticationResult,
  type AuthenticatorDeps,
  anonymousUser,
  type CredentialAuthenticator,
  createAuthenticator,
  type PresentedCredentials,
} from './authenticator.ts';
export { type AuthorizerDeps, createAuthorizer } from './authorizer.ts';
export { createCertificateSigner } from './certificate-signer.ts';
export { type CredentialFiles, diskCredentialFiles } from './credential-files.ts';
export { createRequestSecurity, type RequestSecurityDeps } from './front-security.ts';
export type { KubeconfigOptions } from './kubeconfig.ts';
export { type KubeconfigContents, kubeconfigText } from './kubeconfig.ts';
export { type Grant, parseGrant, type Role } from './roles.ts';
export {
  adminName,
  followCertificates,
  openServerCredentials,
  type RotatedCredential,
  ServerCredentials,
  type ServerCredentialsOptions,
  tlsOptions,
} from './server-credentials.ts';
export { createTokenIssuer, defaultIssuer, type TokenIssuerOptions } from './token-issuer.ts';
export {
  type IssuerDocumentsDeps,
  issuerDocuments,
  jsonWebKeys,
  openidConfiguration,
  openTokenKeys,
  type TokenKey,
  type TokenKeys,
} from './token-keys.ts';
