export { type CommandRunner, ExecProbes, type ExecProbesDeps } from './exec-probe.ts';
export { ProbeManager, type ProbeManagerDeps } from './manager.ts';
export { type ProbeObserver, type ProbeSubject, probeMetrics } from './metrics.ts';
export { type NetworkProberDeps, networkProber, withCommands } from './network-prober.ts';
export { PodProbes, type PodProbesDeps } from './pod-probes.ts';
export type {
  ExecAction,
  GrpcAction,
  HttpAction,
  ProbeAction,
  ProbeRequest,
  ProbeResponse,
  Prober,
  ProbeType,
  TcpAction,
} from './probe-request.ts';
export { type ActionTarget, probeAction } from './probe-request.ts';
export { type ProbeResult, ProbeResults } from './results.ts';

export type { ProbeChange } from './worker.ts';
