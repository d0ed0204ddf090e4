/**
 * Requests that are forwarded to a kubelet or pod: logs, exec, attach, port-forward, proxies and
 * resource metrics.
 */
export type { StreamCall, Streams, StreamsDeps } from './deps.ts';
export {
  addressOf,
  type KubeletCredentials,
  type KubeletDialer,
  type KubeletEndpoint,
} from './kubelet-dialer.ts';
export { type MetricsDeps, metricsEntries } from './metrics.ts';
export { createStreams } from './streams.ts';
