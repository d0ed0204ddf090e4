/** What only a node that others reach over the network needs. */
export * from '../auth/index.ts';
export { type CheckpointHost, checkpointLocation, checkpointRoute } from '../checkpoint.ts';
export { CheckpointFolder, type CheckpointFolderDeps, type Freezer } from '../checkpoint-folder.ts';
export { configzRoute } from '../configz.ts';
export { debugFlagsRoute } from '../debug-flags.ts';
export { HealthSlis } from '../health-slis.ts';
export { HttpMetricFamilies, type HttpMetrics, type ServerType } from '../http-metrics.ts';
export { imagesRoute } from '../images.ts';
export { NodeServers, type NodeServersOptions } from '../node-servers.ts';
export { readOnlyRoutes, withoutDebugging } from '../open-routes.ts';
export {
  type CertificateSource,
  type ServingCertificate,
  type ServingTls,
  servedWith,
} from '../secure-server.ts';
export { flagzRoute, type StatuszFacts, statuszRoute } from '../status-pages.ts';
export * from '../system-logs/index.ts';
export { type TlsProfile, type TlsSettings, tlsProfile } from '../tls-profile.ts';
