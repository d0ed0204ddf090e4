import type { Clock, Logger } from '../lib/index.ts';
import type { Pod, PodRules } from '../pods/index.ts';
import type { LastGoodManifests } from './manifest-checkpoints.ts';
import type { StaticUids } from './manifest-claims.ts';
import type { SourceProblem } from './problems.ts';

/** What every source of manifests is given, wherever its texts come from. */
export interface ManifestSourceOptions {
  readonly nodeName: string;
  readonly rules: PodRules;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How often to look although nothing hinted at a change. */
  readonly resyncMs: number;
  /** Takes the complete list of pods each time it changes. */
  readonly setPods: (pods: readonly Pod[]) => void;
  /** Told once for each problem that comes up. */
  readonly onProblem: (problem: SourceProblem) => void;
  /** Told once when a file or URL has no problem any more, or is gone. */
  readonly onResolved?: ((path: string) => void) | undefined;
  /** Shared with all other sources of manifests. */
  readonly uids?: StaticUids;
  /** What outlives the process; nothing unless given. */
  readonly lastGood?: LastGoodManifests;
}
