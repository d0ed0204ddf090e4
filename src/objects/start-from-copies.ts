import type { Clock, Logger } from '../lib/index.ts';
import type { PodConfig } from '../sources/index.ts';
import type { KeptPodsOfApi } from './pod-copies.ts';

/**
 * An API server that is available responds within this time; its response takes precedence over
 * copies.
 */
const patienceMs = 10_000;
/** By then every desired pod was synced and has registered its references. */
const settledMs = 120_000;

export interface StartFromCopiesDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly kept: Pick<KeptPodsOfApi, 'read'>;
  readonly config: Pick<PodConfig, 'setExpected' | 'isReady'>;
  /** Removes the copies without references. */
  readonly retainReferred: () => Promise<void>;
}

/**
 * Starts the pods that the node had when it last reached its API server, if the server does not
 * respond soon.
 */
export async function startFromCopies(
  { clock, logger, kept, config, retainReferred }: StartFromCopiesDeps,
  signal: AbortSignal,
): Promise<void> {
  await clock.sleep(patienceMs, signal);
  const pods = await kept.read();
  if (config.setExpected('api', pods) === 'expected')
    logger.warn('API server does not respond, starting pods from their copies', {
      pods: pods.length,
    });
  while (!config.isReady('api')) await clock.sleep(patienceMs, signal);
  await clock.sleep(settledMs, signal);
  await retainReferred();
}
