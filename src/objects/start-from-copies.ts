import type { Clock, Logger } from '../lib/index.ts';
import type { PodConfig } from '../sources/index.ts';
import type { KeptPodsOfApi } from './pod-copies.ts';

/** An API that answers at all does so by then; what it says is better than any copy. */
const patienceMs = 10_000;
/** By then every pod that is wanted was looked at, and has said what it refers to. */
const settledMs = 120_000;

export interface StartFromCopiesDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly kept: Pick<KeptPodsOfApi, 'read'>;
  readonly config: Pick<PodConfig, 'setExpected' | 'isReady'>;
  /** Removes the copies nothing refers to any more. */
  readonly retainReferred: () => Promise<void>;
}

/** Lets the pods be started that the node had when it last heard of its API, should it not hear of it soon. */
export async function startFromCopies(
  { clock, logger, kept, config, retainReferred }: StartFromCopiesDeps,
  signal: AbortSignal,
): Promise<void> {
  await clock.sleep(patienceMs, signal);
  const pods = await kept.read();
  if (config.setExpected('api', pods) === 'expected')
    logger.warn('The API server does not answer: the pods it had are started from their copies', {
      pods: pods.length,
    });
  while (!config.isReady('api')) await clock.sleep(patienceMs, signal);
  await clock.sleep(settledMs, signal);
  await retainReferred();
}
