export { containerLogsRoute, type LogsView } from './container-logs.ts';
export { type HealthCheck, type HealthResponse, healthCheckResponse, healthResponse } from './health.ts';
export {
  healthRoutes,
  type KubeletView,
  kubeletRoutes,
  type StatsView,
  statsRoutes,
} from './kubelet-routes.ts';
export { Listener, type ListenerOptions } from './listener.ts';
export { isLoopbackAddress, localGate, loopbackGate } from './loopback-gate.ts';
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
  type DialUpgrade,
  type UpgradeResponse,
  type UpgradeTarget,
  upgradeDialer,
} from './streaming/dial-upgrade.ts';
export type { RequestedStreams } from './streaming/remote-command.ts';
export {
  openRemoteStreams,
  portForwardProtocol,
  type RemoteExit,
  type RemoteStreams,
  readRemoteExit,
  remoteCommandProtocol,
  spdyUpgradeHeaders,
} from './streaming/remote-command.ts';
export {
  type StreamingHost,
  type StreamRoutes,
  streamRoutes,
} from './streaming/stream-routes.ts';
export type { TunnelDeps } from './streaming/tunnel.ts';
