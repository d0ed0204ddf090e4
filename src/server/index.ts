export * from './auth/index.ts';
export { type CheckpointHost, checkpointLocation, checkpointRoute } from './checkpoint.ts';
export { CheckpointFolder, type CheckpointFolderDeps, type Freezer } from './checkpoint-folder.ts';
export { configzRoute } from './configz.ts';
export { containerLogsRoute, type LogsView } from './container-logs.ts';
export { debugFlagsRoute } from './debug-flags.ts';
export { answerCheck, answerHealth, type HealthAnswer, type HealthCheck } from './health.ts';
export { HealthSlis } from './health-slis.ts';
export { HttpMetricFamilies, type HttpMetrics, type ServerType } from './http-metrics.ts';
export { healthRoutes, type KubeletView, kubeletRoutes } from './kubelet-routes.ts';
export { Listener, type ListenerOptions } from './listener.ts';
export { NodeServers, type NodeServersOptions } from './node-servers.ts';
export { readOnlyRoutes, withoutDebugging } from './open-routes.ts';
export {
  disabledRoute,
  json,
  type Request,
  type Response,
  type Route,
  text,
  type UpgradeCall,
  type UpgradeRoute,
} from './router.ts';
export {
  type CertificateSource,
  type ServingCertificate,
  type ServingTls,
  servedWith,
} from './secure-server.ts';
export * from './streaming/index.ts';
export * from './system-logs/index.ts';
export { type TlsProfile, type TlsSettings, tlsProfile } from './tls-profile.ts';
