import { containerFieldPath, type Pod, type PodJournal } from '../pods/index.ts';
import { type ProbeType, typeName } from './probe-request.ts';
import type { ProbeResult } from './results.ts';

/** Whom a probe is about. */
export interface RecordedProbe {
  readonly pod: Pod;
  readonly container: string;
  readonly type: ProbeType;
}

/** Writes down what probes find, as events for users and as steps of the pod's story. */
export class ProbeRecorder {
  readonly #journal: PodJournal;
  readonly #subject: RecordedProbe;

  constructor(journal: PodJournal, subject: RecordedProbe) {
    this.#journal = journal;
    this.#subject = subject;
  }

  /** `count` failures in a row of the `threshold` it takes. */
  failed(output: string, count: number, threshold: number): void {
    // Counted no further than that: what repeats itself is then one line in the pod's story.
    const reached = Math.min(count, threshold);
    this.#event('Unhealthy', `probe failed: ${output.trimEnd()} (${reached}/${threshold})`);
  }

  warned(output: string): void {
    this.#event('ProbeWarning', `probe warning: ${output}`);
  }

  errored(why: string): void {
    this.#event('Unhealthy', `probe errored and resulted in unknown state: ${why}`);
  }

  /** It counts from now on. */
  changed(result: ProbeResult): void {
    const { pod, container, type } = this.#subject;
    if (type === 'liveness' && result === 'success') return;
    const isGood = result === 'success';
    this.#journal.step(pod.metadata.uid, {
      stage: type === 'readiness' ? 'ready' : 'container',
      outcome: isGood ? 'done' : type === 'readiness' ? 'waiting' : 'failed',
      message: `${type} probe ${isGood ? 'succeeded' : 'failed'}`,
      container,
    });
  }

  #event(reason: 'Unhealthy' | 'ProbeWarning', what: string): void {
    const { pod, container, type } = this.#subject;
    this.#journal.event(pod, {
      type: 'Warning',
      reason,
      message: `${typeName(type)} ${what}`,
      fieldPath: containerFieldPath(pod, container),
    });
  }
}
