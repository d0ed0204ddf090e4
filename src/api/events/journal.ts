import type { Clock } from '../../lib/index.ts';
import type { PodEvent, PodJournal } from '../../pods/index.ts';
import type { EventRecorder } from './recorder.ts';
import {
  claimSubject,
  type NamedClaim,
  type NamedVolume,
  nodeSubject,
  podSubject,
  volumeSubject,
} from './reference.ts';

type Recorder = Pick<EventRecorder, 'record'>;

/** Wraps a pod journal so that pod events are also sent to the API. */
export function recordingJournal(journal: PodJournal, recorder: Recorder, clock: Clock): PodJournal {
  return {
    event: (pod, event) => {
      journal.event(pod, event);
      const { type, reason, message, fieldPath, annotations } = event;
      const about = podSubject(pod, fieldPath);
      recorder.record({ about, type, reason, message, at: clock.now(), annotations });
    },
    step: (uid, step) => journal.step(uid, step),
  };
}

/** Creates a recorder that sends node events to the API. */
export function nodeEventRecorder(
  nodeName: string,
  recorder: Recorder,
  clock: Clock,
): (event: Omit<PodEvent, 'fieldPath'>) => void {
  const about = nodeSubject(nodeName);
  return ({ type, reason, message }) => recorder.record({ about, type, reason, message, at: clock.now() });
}

/** Creates a recorder that sends events about persistent volume claims to the API. */
export function claimEventRecorder(
  recorder: Recorder,
  clock: Clock,
): (claim: NamedClaim, event: Omit<PodEvent, 'fieldPath'>) => void {
  return (claim, { type, reason, message }) =>
    recorder.record({ about: claimSubject(claim), type, reason, message, at: clock.now() });
}

/** Creates a recorder that sends events about PersistentVolumes to the API. */
export function volumeEventRecorder(
  recorder: Recorder,
  clock: Clock,
): (volume: NamedVolume, event: Omit<PodEvent, 'fieldPath'>) => void {
  return (volume, { type, reason, message }) =>
    recorder.record({ about: volumeSubject(volume), type, reason, message, at: clock.now() });
}
