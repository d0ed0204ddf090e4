/** What the eviction manager needs of the machine and the kubelet around it. */
export { MachineUsage, type UsageSources } from './machine-usage.ts';
export { type EvictionParts, makeEviction } from './make-eviction.ts';
