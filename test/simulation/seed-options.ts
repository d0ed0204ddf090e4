import type { Mutation } from './kubelet-life.ts';
import type { ScriptWishes, Trouble } from './script.ts';
import type { World } from './world.ts';

export interface SeedOptions extends ScriptWishes {
  readonly mutate?: Mutation | undefined;
  readonly logs?: 'kept' | 'dropped';
  /** The disturbances among the actions of the seed; by default chosen by the seed. */
  readonly trouble?: Trouble | undefined;
  /** Whether the node belongs to a cluster; by default it is standalone. */
  readonly cluster?: 'joined' | 'alone' | undefined;
  /**
   * Whether API pods have all volume types, which requires a cluster; by default they have few
   * volumes.
   */
  readonly volumes?: 'every-kind' | undefined;
  /**
   * Whether the disk is often full and containers write many log lines; by default there is enough
   * space.
   */
  readonly disk?: 'scarce' | undefined;
  /**
   * Whether pods request devices of a plugin that stops and restarts; by default there is no
   * plugin.
   */
  readonly devices?: 'offered' | undefined;
  /** Whether API pods are resized, which requires a cluster; by default they are not. */
  readonly resizes?: 'many' | undefined;
  /**
   * Whether the node is sometimes under resource pressure, which requires a cluster; by default it
   * never is.
   */
  readonly pressure?: 'some' | undefined;
  /** How long to wait for the expected final state; by default half an hour of virtual time. */
  readonly patienceMs?: number | undefined;
}

export interface SeedResult {
  readonly seed: number;
  /** The violated rules with details; empty when the seed holds all invariants. */
  readonly violations: readonly string[];
  readonly history: readonly string[];
  /** The hash of the complete history: the same seed gives the same hash. */
  readonly hash: string;
  readonly virtualMs: number;
  readonly logs: World['logs'];
}
