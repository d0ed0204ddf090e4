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
  /** Interval between scans when there are no hints. */
  readonly resyncMs: number;
  /** Called with the complete list of pods each time it changes. */
  readonly setPods: (pods: readonly Pod[]) => void;
  /** Called once for each new problem of a manifest. */
  readonly onProblem: (problem: SourceProblem) => void;
  /** Called once when all problems of a file or URL are resolved, or when it is deleted. */
  readonly onResolved?: ((path: string) => void) | undefined;
  /** UIDs in use, shared by all manifest sources. */
  readonly uids?: StaticUids;
  /** Checkpoints of valid manifests that survive the process; none when undefined. */
  readonly lastGood?: LastGoodManifests;
}
