import { type Clock, formatDurationMs } from '../../lib/index.ts';
import type { PodJournal, PodUid } from '../../pods/index.ts';
import type { PullStatus } from './image-pulls.ts';

/** The inputs for reporting the progress of a running pull. */
export interface PullReport {
  readonly uid: PodUid;
  readonly container: string;
  /** The image name in the pod's spec. */
  readonly image: string;
  readonly status: () => PullStatus;
  /** Records an event on the pod. */
  readonly event: (type: 'Normal' | 'Warning', message: string) => void;
}

/** The interval at which the pod's journal is updated during a pull. */
const stepMs = 500;
/** The time until the first event of a slow pull, and the interval of further events. */
const firstEventMs = 10_000;
const eventMs = 30_000;
/** How long a pull has no new bytes before it counts as stalled. */
const stalledMs = 60_000;

/**
 * Reports the progress of a pull until the result is disposed of: continuously in the pod's
 * journal, and as events when the pull is slow.
 */
export function reportPull(
  news: PullReport,
  { clock, journal }: { readonly clock: Clock; readonly journal: PodJournal },
): Disposable {
  const startMs = clock.monotonicMs();
  let nextEventMs = startMs + firstEventMs;
  let told: 'moving' | 'stalled' = 'moving';
  let timer = clock.timer(stepMs, () => tell());
  const tell = () => {
    const nowMs = clock.monotonicMs();
    const standing = news.status();
    const state = isStalled(standing, nowMs) ? 'stalled' : 'moving';
    const message = `Pulling image "${news.image}": ${describeProgress(standing, startMs, nowMs)}`;
    const { uid, container } = news;
    journal.step(uid, { stage: 'image', outcome: 'waiting', message, container, keep: 'last' });
    if (nowMs >= nextEventMs || (state === 'stalled' && told === 'moving')) {
      news.event(state === 'stalled' ? 'Warning' : 'Normal', message);
      nextEventMs = Math.max(nextEventMs, nowMs) + eventMs;
    }
    told = state;
    timer = clock.timer(stepMs, () => tell());
  };
  return { [Symbol.dispose]: () => timer.cancel() };
}

function isStalled(standing: PullStatus, nowMs: number): boolean {
  if (standing.kind !== 'pulling' || standing.arrival?.state !== 'arriving') return false;
  return nowMs - standing.arrival.changedMs >= stalledMs;
}

function describeProgress(standing: PullStatus, startMs: number, nowMs: number): string {
  const elapsed = seconds(nowMs - startMs);
  if (standing.kind === 'queued') {
    const { place, length } = standing;
    return `queued for ${elapsed}, position ${place} of ${length}`;
  }
  const { arrival, running } = standing;
  if (arrival === undefined) return `running for ${elapsed}`;
  const { bytes, totalBytes, state, changedMs } = arrival;
  // The bytes are those of all pulls that ran during the sample, and some of these pulls may have
  // ended since. If only one pull still runs, the number of pulls during the sample is unknown, so
  // the text says "several".
  const together = running > 1 ? `all ${running}` : 'several';
  const shared = arrival.of === 'all-images' ? ` (${together} pulls together)` : '';
  const amount = `${mebibytes(bytes)} of ${mebibytes(totalBytes)} MiB${shared} after ${elapsed}`;
  if (state === 'arrived') return `${amount}, unpacking`;
  return isStalled(standing, nowMs)
    ? `${amount}, stalled: no data for ${seconds(nowMs - changedMs)}`
    : amount;
}

function seconds(ms: number): string {
  return formatDurationMs(Math.round(ms / 1_000) * 1_000);
}

function mebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}
