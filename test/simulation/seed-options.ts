import type { Mutation } from './kubelet-life.ts';
import type { ScriptWishes, Trouble } from './script.ts';
import type { World } from './world.ts';

export interface SeedOptions extends ScriptWishes {
  readonly mutate?: Mutation | undefined;
  readonly logs?: 'kept' | 'dropped';
  /** Chosen by the seed unless given. */
  readonly trouble?: Trouble | undefined;
  /** Whether the node belongs to a cluster; it is standalone unless given. */
  readonly cluster?: 'joined' | 'alone' | undefined;
  /** Whether pods of the API have volumes of all kinds, on a node that belongs to a cluster; few unless given. */
  readonly volumes?: 'every-kind' | undefined;
  /**
   * Whether the disk is often full and containers write many log lines; there is enough space
   * unless given.
   */
  readonly disk?: 'scarce' | undefined;
  /**
   * Whether pods request devices of a plugin that stops and restarts; there is no plugin unless
   * given.
   */
  readonly devices?: 'offered' | undefined;
  /** Whether pods of the API are resized, on a node that belongs to a cluster; none unless given. */
  readonly resizes?: 'many' | undefined;
  /**
   * Whether the node is sometimes under resource pressure, on a node that belongs to a cluster;
   * never unless given.
   */
  readonly pressure?: 'some' | undefined;
  /** How long to wait for the desired state; half an hour unless given. */
  readonly patienceMs?: number | undefined;
}

export interface SeedResult {
  readonly seed: number;
  /** The first violated rule, and where. */
  readonly violations: readonly string[];
  readonly history: readonly string[];
  /** Hash of the complete history: the same seed gives the same hash. */
  readonly hash: string;
  readonly virtualMs: number;
  readonly logs: World['logs'];
}
