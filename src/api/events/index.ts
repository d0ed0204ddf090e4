import type { MetricRegistry } from '../../lib/index.ts';
import type { EventOutcome } from './sender.ts';

export type { EventInput } from './event-object.ts';
export { claimEventRecorder, nodeEventRecorder, recordingJournal, volumeEventRecorder } from './journal.ts';
export { EventRecorder, type EventRecorderOptions } from './recorder.ts';
export {
  type EventSubject,
  nodeSubject,
  podSubject,
} from './reference.ts';
export type { EventOutcome } from './sender.ts';

const outcomes: readonly EventOutcome[] = ['sent', 'refused', 'gave-up', 'queue-full', 'spam', 'closed'];

/** Counts event outcomes. Create it once per registry, and use it as a recorder's `onOutcome`. */
export function eventMetrics(registry: MetricRegistry): (outcome: EventOutcome) => void {
  const events = registry.counter({
    name: 'kubeling_events_total',
    help: 'Events of pods and of the node by outcome; only those sent are visible to users.',
    labels: ['outcome'],
  });
  // Creates all series with the value zero, because rate() needs a first value.
  for (const outcome of outcomes) events.with({ outcome });
  return (outcome) => events.with({ outcome }).inc();
}
