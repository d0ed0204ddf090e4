import type { Canary } from './canary.ts';
import type { Swap } from './link-swapper.ts';

export interface Arena {
  /** For all that belongs to the attack; the canary is elsewhere. */
  readonly root: string;
  readonly canary: Canary;
}

export interface Attack {
  readonly swaps: readonly Swap[];
  /** Does what kubeling does there, once; answers all it has read. May reject. */
  act(): Promise<string>;
}

/** A place where kubeling works by a path. */
export interface Place {
  readonly place: string;
  /** Besides root of the host. */
  readonly changedBy: string;
  /** What keeps kubeling from being led elsewhere. */
  readonly heldBy: string;
  /** Undefined where nobody can change the path. */
  readonly attack?: (arena: Arena) => Attack | Promise<Attack>;
}
