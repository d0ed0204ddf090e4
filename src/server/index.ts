export { containerLogsRoute, type LogsView } from './container-logs.ts';
export { answerCheck, answerHealth, type HealthAnswer, type HealthCheck } from './health.ts';
export { healthRoutes, type KubeletView, kubeletRoutes } from './kubelet-routes.ts';
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
export { type StatsView, statsRoutes } from './stats-routes.ts';
export * from './streaming/index.ts';
