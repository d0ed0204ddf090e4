import type { MetricRegistry } from '../../lib/index.ts';
import type { EventOutcome } from './sender.ts';

export type { EventNote } from './event-object.ts';
export { claimEventTeller, nodeEventTeller, recordingJournal, volumeEventTeller } from './journal.ts';
export { EventRecorder, type EventRecorderOptions } from './recorder.ts';
export {
  type ContainerList,
  containerSubject,
  type EventSubject,
  nodeSubject,
  podSubject,
} from './reference.ts';
export type { EventOutcome } from './sender.ts';

const outcomes: readonly EventOutcome[] = ['sent', 'refused', 'gave-up', 'queue-full', 'spam', 'closed'];

/** Make one for a registry, for a recorder's `onOutcome`. */
export function eventMetrics(registry: MetricRegistry): (outcome: EventOutcome) => void {
  const events = registry.counter({
    name: 'kubeling_events_total',
    help: 'Events of pods and of the node, by what became of them; of all but those sent nobody hears.',
    labels: ['outcome'],
  });
  // All are there from the start, at zero: a rate needs a beginning.
  for (const outcome of outcomes) events.with({ outcome });
  return (outcome) => events.with({ outcome }).inc();
}
