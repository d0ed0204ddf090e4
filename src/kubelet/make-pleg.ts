import { type HintLatch, randomHex } from '../lib/index.ts';
import { Pleg, type PlegOptions, plegMetrics, proofContainerId, runtimeEvents } from '../pleg/index.ts';
import type { KubeletDeps } from './kubelet-deps.ts';
import { withHints } from './runtime-state.ts';

export interface PlegParts extends Pick<PlegOptions, 'runtime' | 'exitAnnounced' | 'isBeingEnded'> {
  /** Raised when the runtime may have gone away or come back. */
  readonly hints: Pick<HintLatch, 'raise'>;
}

/** What notices this node's pods. An event of our own shows whether the runtime tells of events at all. */
export function makePleg(
  {
    clock,
    random,
    logger,
    cri,
    metrics,
  }: Pick<KubeletDeps, 'clock' | 'random' | 'logger' | 'cri' | 'metrics'>,
  { runtime, exitAnnounced, isBeingEnded, hints }: PlegParts,
): Pleg {
  return new Pleg({
    clock,
    random,
    log: logger,
    runtime,
    events: runtimeEvents(cri, (signal) =>
      cri.publishContainerdEvent(proofContainerId(randomHex(random, 8)), signal),
    ),
    metrics: withHints(plegMetrics(metrics), () => hints.raise()),
    exitAnnounced,
    isBeingEnded,
  });
}
