/** What the eviction manager needs of the machine and the kubelet around it. */
export { type EvictionParts, makeEviction } from './make-eviction.ts';
