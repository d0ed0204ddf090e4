import type { Clock, Logger } from '../lib/index.ts';
import type { Pod, PodRules } from '../pods/index.ts';
import type { LastGoodManifests } from './manifest-checkpoints.ts';
import type { StaticUids } from './manifest-claims.ts';
import type { SourceProblem } from './problems.ts';

/** Options common to all manifest sources. */
export interface ManifestSourceOptions {
  readonly nodeName: string;
  readonly rules: PodRules;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Interval of scans without a hint. */
  readonly resyncMs: number;
  /** Called with the complete list of pods each time it changes. */
  readonly setPods: (pods: readonly Pod[]) => void;
  /** Called once for each new problem. */
  readonly onProblem: (problem: SourceProblem) => void;
  /** Called once when a file or URL has no problem any more, or is deleted. */
  readonly onResolved?: ((path: string) => void) | undefined;
  /** Shared by all manifest sources. */
  readonly uids?: StaticUids;
  /** Checkpoints that survive the process; none by default. */
  readonly lastGood?: LastGoodManifests;
}
