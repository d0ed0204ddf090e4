/**
 * What passes through to a kubelet or a pod instead of being answered from the store: logs, exec, attach, port-forward,
 * proxies and what is used now.
 */
export type { StreamCall, Streams, StreamsDeps } from './deps.ts';
export {
  type KubeletCredentials,
  type KubeletDoor,
  type KubeletPlace,
  placeOf,
} from './kubelet-door.ts';
export { type MetricsDeps, metricsEntries } from './metrics.ts';
export { makeStreams } from './streams.ts';
