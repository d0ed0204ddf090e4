import type { Pod, PodEvent, PodJournal, PodStep, PodUid } from '../../src/pods/index.ts';

/** A pod journal that stores its entries for the test. */
export class RecordedJournal implements PodJournal {
  readonly events: (PodEvent & { readonly pod: string })[] = [];
  readonly steps: (PodStep & { readonly uid: PodUid })[] = [];

  event(pod: Pod, event: PodEvent): void {
    this.events.push({ ...event, pod: pod.metadata.name });
  }

  step(uid: PodUid, step: PodStep): void {
    this.steps.push({ ...step, uid });
  }
}
