import type { Canary } from './canary.ts';
import type { Swap } from './link-swapper.ts';

export interface Arena {
  /**
   * The directory in which paths are attacked; the canary files, which must never be reached
   * through a link, are outside of it.
   */
  readonly root: string;
  readonly canary: Canary;
}

export interface Attack {
  readonly swaps: readonly Swap[];
  /** Performs the attacked kubeling operation once; returns everything it has read. May reject. */
  act(): Promise<string>;
}

/** A path that kubeling opens by name and an attacker may replace with a link. */
export interface AttackedPath {
  readonly place: string;
  /** The users, besides root on the host, that can change the path. */
  readonly changedBy: string;
  /** What prevents kubeling from following a planted link. */
  readonly protectedBy: string;
  /** The attack to run; undefined where no pod or user can change the path. */
  readonly attack?: (arena: Arena) => Attack | Promise<Attack>;
}
