import type { Mutation } from './kubelet-life.ts';
import type { ScriptWishes, Trouble } from './script.ts';
import type { World } from './world.ts';

export interface SeedOptions extends ScriptWishes {
  readonly mutate?: Mutation | undefined;
  readonly logs?: 'kept' | 'dropped';
  /** Chosen by the seed unless given. */
  readonly trouble?: Trouble | undefined;
  /** Whether the node belongs to a cluster; it is alone unless given. */
  readonly cluster?: 'joined' | 'alone' | undefined;
  /** Whether pods of the API have volumes of all kinds, on a node that belongs to a cluster; few unless given. */
  readonly volumes?: 'every-kind' | undefined;
  /** Whether the disk is often full and containers talk much; there is room for all unless given. */
  readonly disk?: 'scarce' | undefined;
  /** Whether pods ask for devices of a plugin that comes and goes; there is none unless given. */
  readonly devices?: 'offered' | undefined;
  /** Whether pods of the API are resized, on a node that belongs to a cluster; none unless given. */
  readonly resizes?: 'many' | undefined;
  /** Whether the node is short of something now and then, on a node that belongs to a cluster; never unless given. */
  readonly pressure?: 'some' | undefined;
  /** How long to wait for what is wanted; half an hour unless given. */
  readonly patienceMs?: number | undefined;
}

export interface SeedResult {
  readonly seed: number;
  /** The first rule that did not hold, and where. */
  readonly violations: readonly string[];
  readonly history: readonly string[];
  /** Of the whole history: the same seed gives the same. */
  readonly hash: string;
  readonly virtualMs: number;
  readonly logs: World['logs'];
}
