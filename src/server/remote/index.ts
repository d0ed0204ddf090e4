/**
 * Entry point for nodes that serve the kubelet API over the network, so that other nodes do not
 * load TLS and authorization.
 */
export * from '../auth/index.ts';
export {
  CheckpointDirectory,
  type CheckpointDirectoryDeps,
  type CheckpointHost,
  type ContainerCheckpointer,
  checkpointLocation,
  checkpointRoute,
} from '../checkpoint.ts';
export { HealthSlis } from '../health.ts';
export { HttpMetricFamilies, type HttpMetrics, type ServerType } from '../http-metrics.ts';
export { NodeServers, type NodeServersOptions, readOnlyRoutes, withoutDebugging } from '../node-servers.ts';
export {
  type CertificateSource,
  type ServingCertificate,
  type ServingTls,
  servedWith,
} from '../secure-server.ts';
export {
  configzRoute,
  debugFlagsRoute,
  flagzRoute,
  imagesRoute,
  type StatuszFacts,
  statuszRoute,
} from '../status-pages.ts';
export { type Journal, systemJournal } from '../system-logs/journal.ts';
export { createLogTree, type LogNode, type LogTree } from '../system-logs/log-tree.ts';
export { type SystemLogs, systemLogsRoute } from '../system-logs/logs-route.ts';
export { type TlsProfile, type TlsSettings, tlsProfile } from '../tls-profile.ts';
