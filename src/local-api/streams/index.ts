/**
 * What passes through to a kubelet or a pod instead of being answered from the store: logs, exec, attach, port-forward,
 * proxies and what is used now.
 */
export type { StreamCall, Streams, StreamsDeps } from './deps.ts';
export {
  addressOf,
  type KubeletAddress,
  type KubeletCredentials,
  type KubeletDialer,
} from './kubelet-dialer.ts';
export { type MetricsDeps, metricsEntries } from './metrics.ts';
export { createStreams } from './streams.ts';
