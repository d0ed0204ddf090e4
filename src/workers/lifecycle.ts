/**
 * The life of a pod as its worker sees it.
 *
 *   first seen
 *       │
 *       v        deleted, terminal         nothing runs           nothing is held
 *    syncing ─────────────────> terminating ──────────> terminated ──────────> finished ──> forgotten
 *                phase, killed,      │                      ^                     ^
 *                orphaned            │                      │ first seen, had     │
 *                                    │                      │ ended long before   │
 *                                    └── never started, or known to the runtime ──┘
 *                                        alone: there is nothing to give back
 *
 * It goes one way. Termination is never undone for a UID; a pod that should run again under the same UID is forgotten
 * first and then begins anew.
 */
export type Lifecycle =
  | { readonly state: 'syncing' }
  | {
      readonly state: 'terminating';
      readonly sinceMs: number;
      /** undefined for a natural end: the spec's applies. It only shrinks. */
      readonly graceSeconds: number | undefined;
      /** `seen` once the worker works on it: from then on no container is started. */
      readonly progress: 'requested' | 'seen';
    }
  | { readonly state: 'terminated'; readonly sinceMs: number }
  | { readonly state: 'finished'; readonly sinceMs: number };

export type LifecycleState = Lifecycle['state'];

const successors: Readonly<Record<LifecycleState, readonly LifecycleState[]>> = {
  syncing: ['terminating'],
  terminating: ['terminated', 'finished'],
  terminated: ['finished'],
  finished: [],
};

export interface Transition {
  readonly from: LifecycleState;
  readonly to: LifecycleState;
  /** For the log and the pod's story. */
  readonly why: string;
  /** How long the state that was left lasted; undefined for syncing, which has no certain beginning. */
  readonly lastedMs: number | undefined;
}

export interface TransitionObserver {
  entered(transition: Transition): void;
  /** Somebody asked for a step the drawing does not have; nothing was changed. */
  refused(transition: Transition): void;
}

type Terminating = Extract<Lifecycle, { state: 'terminating' }>;

/** Holds the state of one pod. `enter` is the only door from one state to another. */
export class PodLifecycle {
  readonly #observer: TransitionObserver;
  #current: Lifecycle;

  constructor(first: Lifecycle, observer: TransitionObserver) {
    this.#current = first;
    this.#observer = observer;
  }

  get current(): Lifecycle {
    return this.#current;
  }

  get state(): LifecycleState {
    return this.#current.state;
  }

  get terminationRequested(): boolean {
    return this.#current.state !== 'syncing';
  }

  /** Whether nothing of the pod runs any more. */
  get ended(): boolean {
    return this.#current.state === 'terminated' || this.#current.state === 'finished';
  }

  /** Whether no container of the pod will be started any more. */
  get terminationSeen(): boolean {
    return this.ended || this.#terminating?.progress === 'seen';
  }

  get graceSeconds(): number | undefined {
    return this.#terminating?.graceSeconds;
  }

  /** Answers whether the step was taken. */
  enter(next: Lifecycle, why: string): boolean {
    const before = this.#current;
    const lastedMs =
      'sinceMs' in before && 'sinceMs' in next ? Math.max(0, next.sinceMs - before.sinceMs) : undefined;
    const transition: Transition = { from: before.state, to: next.state, why, lastedMs };
    if (!successors[before.state].includes(next.state)) {
      this.#observer.refused(transition);
      return false;
    }
    this.#current = next;
    this.#observer.entered(transition);
    return true;
  }

  /** The worker has begun to terminate the pod. */
  seeTermination(): void {
    const terminating = this.#terminating;
    if (terminating !== undefined) this.#current = { ...terminating, progress: 'seen' };
  }

  /** A longer one than there is changes nothing. */
  shrinkGrace(graceSeconds: number): void {
    const terminating = this.#terminating;
    if (terminating === undefined || graceSeconds >= (terminating.graceSeconds ?? Number.POSITIVE_INFINITY))
      return;
    this.#current = { ...terminating, graceSeconds };
  }

  get #terminating(): Terminating | undefined {
    return this.#current.state === 'terminating' ? this.#current : undefined;
  }
}
