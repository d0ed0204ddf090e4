import { describeError } from '../../lib/index.ts';
import type { Pod, PodJournal } from '../../pods/index.ts';
import type { DraManager } from './dra-manager.ts';

export interface PrepareClaimsDeps {
  readonly claims?: Pick<DraManager, 'prepare'> | undefined;
  readonly journal: Pick<PodJournal, 'event'>;
}

/**
 * Prepares the resource claims of the pod before its sandbox is created; reports a failure as pod
 * event and rejects.
 */
export async function prepareClaims(
  { claims, journal }: PrepareClaimsDeps,
  pod: Pod,
  signal: AbortSignal,
): Promise<void> {
  try {
    await claims?.prepare(pod, signal);
  } catch (error) {
    signal.throwIfAborted();
    const message = `Failed to prepare dynamic resources: ${describeError(error)}`;
    journal.event(pod, { type: 'Warning', reason: 'FailedPrepareDynamicResources', message });
    throw error;
  }
}
