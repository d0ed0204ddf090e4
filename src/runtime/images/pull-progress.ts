import { type Clock, formatDurationMs } from '../../lib/index.ts';
import type { PodJournal, PodUid } from '../../pods/index.ts';
import type { PullStatus } from './image-pulls.ts';

/** How a pull is told of while it goes on. */
export interface PullReport {
  readonly uid: PodUid;
  readonly container: string;
  /** As the pod names it. */
  readonly image: string;
  readonly status: () => PullStatus;
  /** For the owner of the pod, now and then. */
  readonly event: (type: 'Normal' | 'Warning', message: string) => void;
}

/** So often the pod's story is brought up to date. */
const stepMs = 500;
/** A pull is silent for so long, then events tell how it is doing again and again. */
const firstEventMs = 10_000;
const eventMs = 30_000;
/** Without a byte for so long something is wrong. */
const stalledMs = 60_000;

/** Tells what a pull is about until disposed of: in the pod's story all the time, by events when it takes long. */
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
    const message = `Pulling image "${news.image}": ${describeStanding(standing, startMs, nowMs)}`;
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

function describeStanding(standing: PullStatus, startMs: number, nowMs: number): string {
  const elapsed = seconds(nowMs - startMs);
  if (standing.kind === 'queued') {
    const { place, length } = standing;
    return `waiting for its turn for ${elapsed}, place ${place} of ${length} in the queue`;
  }
  const { arrival, running } = standing;
  if (arrival === undefined) return `under way after ${elapsed}`;
  const { bytes, totalBytes, state, changedMs } = arrival;
  // Of those that were seen together some may have ended since.
  const together = running > 1 ? `all ${running}` : 'several';
  const shared = arrival.of === 'all-images' ? ` (${together} pulls together)` : '';
  const amount = `${mebibytes(bytes)} of ${mebibytes(totalBytes)} MiB${shared} after ${elapsed}`;
  if (state === 'arrived') return `${amount}, unpacking`;
  return isStalled(standing, nowMs)
    ? `${amount}, stalled: nothing came for ${seconds(nowMs - changedMs)}`
    : amount;
}

function seconds(ms: number): string {
  return formatDurationMs(Math.round(ms / 1_000) * 1_000);
}

function mebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}
