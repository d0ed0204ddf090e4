import type { Pod, PodEvent, PodJournal, PodStep, PodUid } from '../../src/pods/index.ts';

/** Stores the entries for tests. */
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
