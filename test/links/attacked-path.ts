import type { Canary } from './canary.ts';
import type { Swap } from './link-swapper.ts';

export interface Arena {
  /** The directory of the attack; the canary is elsewhere. */
  readonly root: string;
  readonly canary: Canary;
}

export interface Attack {
  readonly swaps: readonly Swap[];
  /** Performs the operation of kubeling once; returns everything it has read. May reject. */
  act(): Promise<string>;
}

/** A path that kubeling opens by name. */
export interface AttackedPath {
  readonly place: string;
  /** Besides root of the host. */
  readonly changedBy: string;
  /** What prevents kubeling from following a planted link. */
  readonly protectedBy: string;
  /** Undefined where no pod or user can change the path. */
  readonly attack?: (arena: Arena) => Attack | Promise<Attack>;
}
