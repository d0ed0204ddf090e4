import type { TopologyPolicy } from '../topology/merge-hints.ts';

/** What the configuration says of processors, memory and devices that have their place on the machine. */
export interface AllotmentSettings {
  /** The static policy; containers have no processors of their own unless given. */
  readonly cpu?:
    | {
        /** Of the machine's, how many no container gets for itself. */
        readonly reservedCount: number;
        /** Which they are, such as 0-1,4; empty for the first. */
        readonly reservedCpus: string;
        /** As written. */
        readonly options: Readonly<Record<string, string>>;
        readonly reconcileMs: number;
        /** Whether containers with processors of their own are held to a quota as well; they are not unless given. */
        readonly quota?: 'kept' | 'lifted' | undefined;
      }
    | undefined;
  /** The static policy; containers have memory of any NUMA node unless given. */
  readonly memory?:
    | {
        /** Kept back on each NUMA node, in bytes by the name of the resource. */
        readonly reserved: readonly {
          readonly numaNode: number;
          readonly limits: ReadonlyMap<string, bigint>;
        }[];
        /** What these have to sum up to. */
        readonly required: ReadonlyMap<string, bigint>;
      }
    | undefined;
  /** Nothing is kept together unless given. */
  readonly topology?:
    | {
        readonly policy: TopologyPolicy;
        readonly scope: 'container' | 'pod';
        readonly options: Readonly<Record<string, string>>;
      }
    | undefined;
}
