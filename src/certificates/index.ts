/**
 * Certificates: the node's identity towards the API server, and the certificate with which its own
 * server is verified.
 *
 *     client certificate, for requests:
 *       kubeconfig, bootstrap kubeconfig ─> prepareClientAccess ─> openClientCertificate ─> run,
 *       onRotated; guardCredentials exits when the certificate is lost
 *       (or, without rotation: bootstrapClientCertificate, once)
 *     serving certificate, for the server:
 *       tlsCertFile, serverTLSBootstrap ─> servingSource ─> openServingCertificate ─> run, onRotated
 */

export type { KeyKind, KeyPair, Leaf } from '../protocols/x509/index.ts';
export {
  type BootstrapApi,
  type BootstrapDeps,
  type BootstrapSettings,
  bootstrapClientCertificate,
} from './bootstrap.ts';
export { CertificateManager } from './certificate-manager.ts';
export {
  type CertificateAccess,
  type ClientAccessDeps,
  type ClientAccessSettings,
  prepareClientAccess,
  storedCertificate,
} from './client-access.ts';
export {
  type CertificateDeps,
  type ClientCertificateSettings,
  type CredentialGuardDeps,
  guardCredentials,
  type KubeconfigCertificate,
  openClientCertificate,
} from './client-certificate.ts';
export { type CertificateFileKind, type CertificateFiles, realCertificateFiles } from './files.ts';
export {
  type KubeconfigView,
  kubeconfigCertificate,
  type ParseKubeconfig,
  withClientCertificate,
} from './kubeconfig.ts';
export {
  clientCertificateMetrics,
  exposeTimeToLive,
  type RotationObserver,
  serverCertificateMetrics,
} from './metrics.ts';
export type { ServedCertificate } from './serving-certificate.ts';
export {
  openServingCertificate,
  type ServingSettings,
  type ServingSource,
  type ServingSourceSettings,
  servingSource,
} from './serving-certificate.ts';
export type { CsrApi } from './signing-request.ts';
