import { containerFieldPath, type Pod, type PodJournal } from '../pods/index.ts';
import { type ProbeType, typeName } from './probe-request.ts';
import type { ProbeResult } from './results.ts';

/** The probe whose results are recorded. */
export interface RecordedProbe {
  readonly pod: Pod;
  readonly container: string;
  readonly type: ProbeType;
}

/** Records probe results as events and as journal steps. */
export class ProbeRecorder {
  readonly #journal: PodJournal;
  readonly #subject: RecordedProbe;

  constructor(journal: PodJournal, subject: RecordedProbe) {
    this.#journal = journal;
    this.#subject = subject;
  }

  /**
   * Records a failure: `count` is the number of consecutive failures, `threshold` the failure
   * threshold.
   */
  failed(output: string, count: number, threshold: number): void {
    // The count is limited to the threshold, so that repeated failures give equal events.
    const reached = Math.min(count, threshold);
    this.#event('Unhealthy', `probe failed: ${output.trimEnd()} (${reached}/${threshold})`);
  }

  warned(output: string): void {
    this.#event('ProbeWarning', `probe warning: ${output}`);
  }

  errored(why: string): void {
    this.#event('Unhealthy', `probe errored and resulted in unknown state: ${why}`);
  }

  /** Records a probe result that has changed after enough consecutive results. */
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
