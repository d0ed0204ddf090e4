import type { Pod, PodUid } from '../../pods/index.ts';

/** What housekeeping knows about the pods behind the cgroups it finds. */
export interface OrphanRules {
  mayRun(uid: PodUid): boolean;
  /** While volumes are mounted the cgroup stays: what a tmpfs holds would else be charged to all other pods. */
  hasVolumes(uid: PodUid): boolean | Promise<boolean>;
}

/** The cgroups of pods, as whoever runs pods needs them. */
export interface PodCgroups {
  /** The parent for the pod's sandbox and containers: the path below each tree of cgroups; empty for none. */
  cgroupParent(pod: Pod): string;
  /** May be called again at any time. */
  ensureExists(pod: Pod, signal: AbortSignal): Promise<'created' | 'there'>;
  destroy(pod: Pod, signal: AbortSignal): Promise<void>;
  /** Every pod that has a cgroup. */
  list(): Promise<ReadonlyMap<PodUid, unknown>>;
  removeOrphans(rules: OrphanRules, signal: AbortSignal): Promise<readonly PodUid[]>;
}

/** For a node that is told to make none: containers go where the runtime puts them. */
export const noPodCgroups: PodCgroups = {
  cgroupParent: () => '',
  ensureExists: async () => 'there',
  destroy: async () => {},
  list: async () => new Map(),
  removeOrphans: async () => [],
};
