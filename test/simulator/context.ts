import type { Clock, Random } from '../../src/lib/index.ts';
import type { EventHub } from './events.ts';
import type { SimulatedFiles } from './files.ts';
import type { FlavourFacts } from './flavour.ts';
import type { ImageStore } from './image-store.ts';
import type { LatencyStep } from './latency.ts';
import type { ScriptChooser } from './launch-plan.ts';
import type { Rules } from './mutations.ts';
import type { PodNetwork } from './network.ts';
import type { Store } from './store.ts';
import type { Trace } from './trace.ts';
import type { Work } from './work.ts';

/** State and services shared by all parts of one simulated runtime. */
export interface SimulatorContext {
  readonly clock: Clock;
  readonly random: Random;
  /** A timestamp in nanoseconds since 1970, strictly increasing. */
  readonly nowNs: () => bigint;
  /** A random ID of 64 hexadecimal digits. */
  readonly newId: () => string;
  readonly newPid: () => number;
  readonly latencyMs: (step: LatencyStep) => number;
  readonly flavour: FlavourFacts;
  readonly rules: Rules;
  readonly store: Store;
  readonly images: ImageStore;
  readonly network: PodNetwork;
  readonly files: SimulatedFiles;
  readonly events: EventHub;
  readonly trace: Trace;
  readonly work: Work;
  /**
   * Whether the runtime is running; processes keep running while it is down, and it observes their
   * exit after its restart.
   */
  readonly isUp: () => boolean;
  readonly chooseScript: ScriptChooser;
}

/** The context of a runtime call, which its handler receives. */
export interface CallContext {
  /**
   * The signal that is aborted, with a GrpcError as its reason, when the caller no longer waits for
   * the response.
   */
  readonly signal: AbortSignal;
}
