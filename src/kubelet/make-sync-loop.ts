import { Backoff } from '../lib/index.ts';
import type { PodUpdate } from '../sources/index.ts';
import type { KubeletDeps } from './kubelet-deps.ts';
import { SyncLoop, type SyncLoopInputs, type SyncLoopOptions } from './sync-loop.ts';
import { ticker } from './ticker.ts';

const tickMs = 1_000;
const pause = { baseMs: 100, maxMs: 5_000 };
const silent = { next: () => new Promise<undefined>(() => {}) };

/** Those who tell the loop of something. */
export interface LoopSpeakers extends Pick<SyncLoopInputs, 'housekeeping' | 'probes'> {
  /** Nobody has devices unless given. */
  readonly devices?: SyncLoopInputs['devices'] | undefined;
  readonly sources: {
    someChanged(signal: AbortSignal): Promise<void>;
    /** All that has changed since the last time; undefined if nothing has. */
    takeUpdate(): PodUpdate | undefined;
  };
  readonly pleg: { nextEvent: SyncLoopInputs['pleg']['next'] };
}

/** The loop of this node. */
export function makeSyncLoop(
  { clock, random, logger }: Pick<KubeletDeps, 'clock' | 'random' | 'logger'>,
  { sources, pleg, housekeeping, probes, devices = silent }: LoopSpeakers,
  rules: Pick<SyncLoopOptions, 'handler' | 'problems'>,
): SyncLoop {
  const config = async (signal: AbortSignal) => {
    await sources.someChanged(signal);
    return () => sources.takeUpdate();
  };
  return new SyncLoop({
    clock,
    logger,
    pause: new Backoff(pause, random),
    ...rules,
    inputs: {
      config: { next: config },
      pleg: { next: (signal) => pleg.nextEvent(signal) },
      sync: ticker(clock, tickMs),
      housekeeping,
      probes,
      devices,
    },
  });
}
