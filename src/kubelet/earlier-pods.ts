import type { ObservedPod, Pod, PodSource, PodUid } from '../pods/index.ts';
import type { PodStanding } from './admission.ts';
import type { PodNotebook } from './pod-notebook.ts';

export interface EarlierPodsDeps {
  readonly notes: Pick<PodNotebook, 'get' | 'see' | 'ranInThisBoot' | 'secondsLeft'>;
  /** What the runtime last said; throws where it does not say. */
  readonly observed: (uid: PodUid) => ObservedPod;
  readonly sources: {
    allReady(): boolean;
    isReady(source: PodSource): boolean;
    readiness(): readonly { readonly source: PodSource }[];
  };
}

/** What follows for a pod from what earlier kubelets have noted of it. */
export class EarlierPods {
  readonly #deps: EarlierPodsDeps;

  constructor(deps: EarlierPodsDeps) {
    this.#deps = deps;
  }

  /** A source has brought the pod. */
  see(pod: Pod): void {
    this.#deps.notes.see(pod);
  }

  /** One that has lived here since before this kubelet need not ask again whether it may. */
  standing({ metadata: { uid } }: Pod): PodStanding {
    return this.#deps.notes.ranInThisBoot(uid) && this.#hasLiveSandbox(uid) ? 'lives-here' : 'new';
  }

  /** What is left of the time to end to a pod that was being stopped; undefined for any other. */
  secondsLeft(uid: PodUid): number | undefined {
    return this.#deps.notes.secondsLeft(uid);
  }

  /**
   * Whether everybody who could want the pod has spoken: its own source, where that is known, or else all of them. A
   * source that is not set up any more wants nothing.
   */
  mayJudge(uid: PodUid): boolean {
    const { notes, sources } = this.#deps;
    if (sources.allReady()) return true;
    const source = notes.get(uid)?.source;
    if (source === undefined) return false;
    return sources.isReady(source) || sources.readiness().every((one) => one.source !== source);
  }

  #hasLiveSandbox(uid: PodUid): boolean {
    try {
      return this.#deps.observed(uid).sandboxes.some(({ state }) => state === 'ready');
    } catch {
      return false;
    }
  }
}
