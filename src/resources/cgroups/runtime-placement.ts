import type { PodUid } from '../../pods/index.ts';

/** What a container of the runtime, whether or not it runs now, was given of the machine. */
export interface RuntimePlacement {
  readonly uid: PodUid;
  readonly container: string;
  /** The processors it may use; empty for all. */
  readonly cpus: ReadonlySet<number>;
  readonly cpuShares: number;
  readonly cpuQuotaUs: number;
  readonly cpuPeriodUs: number;
  /** The NUMA nodes its memory comes from; empty for all. */
  readonly mems: ReadonlySet<number>;
  /** How much it may have, in bytes by the name of the resource. */
  readonly memory: ReadonlyMap<string, number>;
}
