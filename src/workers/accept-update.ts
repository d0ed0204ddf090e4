import { isTerminalPhase, type Pod } from '../pods/index.ts';
import { requestedGraceSeconds, shrunkGraceSeconds, specGraceSeconds } from './grace.ts';
import type { UpdatePodOptions, WorkSubject } from './updates.ts';
import { knownPod, type WorkerRecord } from './worker-record.ts';

/** The outcome of an update. */
export type Acceptance =
  | { readonly kind: 'ignored'; readonly why: string }
  | {
      readonly kind: 'work';
      readonly subject: WorkSubject;
      /** `until-stopped` if callers that wait for the pod to stop have to wait for this update. */
      readonly waits: 'until-stopped' | 'no';
      /** Why the running sync must be cancelled; undefined if the sync continues. */
      readonly cancel: string | undefined;
    };

export interface OfferedUpdate {
  readonly record: WorkerRecord;
  readonly options: UpdatePodOptions;
  readonly given: WorkSubject;
  readonly observation: 'first' | 'again';
  readonly nowMs: number;
}

/**
 * Applies an update to the worker record of its pod, which stores whether the pod terminates, its
 * grace period and the callbacks. The caller must pass the returned work to the worker.
 */
export function acceptUpdate(update: OfferedUpdate): Acceptance {
  const { record, options, given, observation } = update;
  const { lifecycle } = record;
  if (observation === 'again' && lifecycle.terminationRequested && options.updateType === 'create') {
    record.restartRequested = true;
    return { kind: 'ignored', why: 'the pod is terminating; it starts again with the same UID afterwards' };
  }
  if (lifecycle.state === 'finished') return { kind: 'ignored', why: 'the pod is finished' };
  const subject = bestSubject(record, given);
  const began = beginTermination(update, subject);
  if (lifecycle.ended && given.kind === 'runtime-pod')
    return { kind: 'ignored', why: 'no container of the pod runs any more' };
  if (lifecycle.state !== 'terminating') return { kind: 'work', subject, waits: 'no', cancel: undefined };
  return { kind: 'work', subject, waits: 'until-stopped', cancel: shortenGrace(update, subject) ?? began };
}

/**
 * Returns the full pod if the worker has its spec; otherwise returns the given pod of the update
 * unchanged, for example one that only the runtime has.
 */
function bestSubject(record: WorkerRecord, given: WorkSubject): WorkSubject {
  if (given.kind === 'pod') return given;
  record.wasObserved = true;
  const pod = knownPod(record);
  return pod === undefined ? given : { kind: 'pod', pod };
}

/**
 * Starts the termination of the pod if the update requires it; returns the reason, or undefined.
 */
function beginTermination(
  { record, options, given, nowMs }: OfferedUpdate,
  subject: WorkSubject,
): string | undefined {
  if (record.lifecycle.terminationRequested) {
    if (subject.kind === 'pod' && isDeleted(subject.pod)) record.deleted = true;
    return undefined;
  }
  const reason = terminationReason(options, given, subject);
  if (reason === undefined) return undefined;
  record.deleted ||= reason.marks === 'deleted';
  record.evicted ||= reason.marks === 'evicted';
  const pod = subject.kind === 'pod' ? subject.pod : undefined;
  const graceSeconds = requestedGraceSeconds(pod, options.kill?.graceOverrideSeconds);
  record.lifecycle.enter(
    { state: 'terminating', sinceMs: nowMs, graceSeconds, progress: 'requested' },
    reason.why,
  );
  return reason.why;
}

interface TerminationReason {
  readonly why: string;
  readonly marks: 'deleted' | 'evicted' | 'nothing';
}

function terminationReason(
  { updateType, kill }: UpdatePodOptions,
  given: WorkSubject,
  subject: WorkSubject,
): TerminationReason | undefined {
  if (given.kind === 'runtime-pod' || subject.kind === 'runtime-pod')
    return { why: 'only the runtime has it', marks: 'deleted' };
  if (isDeleted(subject.pod)) return { why: 'it was deleted', marks: 'deleted' };
  if (isTerminalPhase(subject.pod.status.phase))
    return { why: `its phase is ${subject.pod.status.phase}`, marks: 'nothing' };
  if (updateType !== 'kill') return undefined;
  return kill?.evict === true
    ? { why: 'it was evicted', marks: 'evicted' }
    : { why: 'the kubelet stops it', marks: 'nothing' };
}

function isDeleted(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp !== undefined;
}

/** Shortens the grace period if requested; returns why the running sync is cancelled. */
function shortenGrace({ record, options }: OfferedUpdate, subject: WorkSubject): string | undefined {
  const { kill } = options;
  if (kill?.done !== undefined) record.done.push(kill.done);
  if (kill?.statusFn !== undefined) record.statusFn = kill.statusFn;
  const { lifecycle } = record;
  const pod = subject.kind === 'pod' ? subject.pod : undefined;
  const givenSeconds = lifecycle.graceSeconds ?? specGraceSeconds(pod);
  const graceSeconds = shrunkGraceSeconds(lifecycle.graceSeconds, pod, kill?.graceOverrideSeconds);
  lifecycle.shrinkGrace(graceSeconds);
  return graceSeconds < givenSeconds ? `its grace period shrank to ${graceSeconds} s` : undefined;
}
