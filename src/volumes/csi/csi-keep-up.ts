import { describeError } from '../../lib/index.ts';
import type { Pod, PodJournal } from '../../pods/index.ts';
import type { CsiApi } from './csi-api.ts';
import { isAbsent } from './csi-failures.ts';
import type { CsiVolume } from './csi-request.ts';
import type { CsiUpkeepDeps } from './csi-upkeep.ts';

type Work = (pod: Pod, volume: CsiVolume, signal: AbortSignal) => Promise<void>;

export interface CsiKeepUpDeps {
  /** Undefined on a node without an API server. */
  readonly api: Pick<CsiApi, 'driver'> | undefined;
  readonly journal: Pick<PodJournal, 'event'>;
  readonly publishAgain: Work;
  /** Makes it as large as it has become elsewhere. */
  readonly expand: Work;
}

/** What is done to a volume of a pod that runs. What is there stays, whatever its driver says. */
export function keptUpBy(deps: CsiKeepUpDeps): CsiUpkeepDeps['work'] {
  return async (pod, volume, signal) => {
    const ends = [
      await republish(deps, pod, volume, signal).then(...doneUnless(signal)),
      await deps.expand(pod, volume, signal).then(...doneUnless(signal)),
    ];
    return ends.includes('again') ? 'again' : 'done';
  };
}

async function republish(
  { api, journal, publishAgain }: CsiKeepUpDeps,
  pod: Pod,
  volume: CsiVolume,
  signal: AbortSignal,
): Promise<void> {
  const driver = await api?.driver(volume.driver, signal);
  if (driver?.spec.requiresRepublish !== true) return;
  await publishAgain(pod, volume, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    const reason = volume.shownAs === 'device' ? 'FailedMapVolume' : 'FailedMount';
    journal.event(pod, { type: 'Warning', reason, message: describeError(error) });
    throw error;
  });
}

/** A driver that is away is not missed by a pod that runs: when it comes back it is asked soon enough. */
function doneUnless(signal: AbortSignal) {
  const failed = (error: unknown) => {
    signal.throwIfAborted();
    return isAbsent(error) ? ('done' as const) : ('again' as const);
  };
  return [() => 'done' as const, failed] as const;
}
