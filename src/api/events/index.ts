export type { EventNote } from './event-object.ts';
export { claimEventTeller, nodeEventTeller, recordingJournal, volumeEventTeller } from './journal.ts';
export { eventMetrics } from './metrics.ts';
export { EventRecorder, type EventRecorderOptions } from './recorder.ts';
export {
  type ContainerList,
  containerSubject,
  type EventSubject,
  nodeSubject,
  podSubject,
} from './reference.ts';
export type { EventOutcome } from './sender.ts';
