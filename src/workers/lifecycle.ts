import type { PodStep } from '../pods/index.ts';

/**
 * The states of a pod in its worker.
 *
 *   first added
 *       │
 *       v        deleted, terminal         nothing runs           nothing is held
 *    syncing ─────────────────> terminating ──────────> terminated ──────────> finished ──> dropped
 *                phase, killed,      │                      ^                     ^
 *                orphaned            │                      │ first added after   │
 *                                    │                      │ it had finished     │
 *                                    └── never started, or known to the runtime ──┘
 *                                        alone: there is nothing to release
 *
 * Transitions have one direction. Termination is never undone for a UID: a pod that is desired again with the same UID is
 * dropped first and then starts from scratch.
 */
export type Lifecycle =
  | { readonly state: 'syncing' }
  | {
      readonly state: 'terminating';
      readonly sinceMs: number;
      /**
       * The grace period; undefined for a pod that terminated by itself, to which the grace period
       * of the spec applies. It never increases.
       */
      readonly graceSeconds: number | undefined;
      /**
       * `seen` once the worker has begun to terminate the pod; afterwards no container of the pod
       * is started.
       */
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
  /** The reason of the transition, for logs and the history of the pod. */
  readonly why: string;
  /** How long the previous state lasted; undefined for syncing, whose start is not recorded. */
  readonly lastedMs: number | undefined;
}

export interface TransitionObserver {
  entered(transition: Transition): void;
  /**
   * Called for a rejected transition, which the diagram does not contain; the state is unchanged.
   */
  rejected(transition: Transition): void;
}

type Terminating = Extract<Lifecycle, { state: 'terminating' }>;

/** The lifecycle state of one pod. Only `enter` changes the state. */
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

  /** Whether all containers of the pod have stopped. */
  get ended(): boolean {
    return this.#current.state === 'terminated' || this.#current.state === 'finished';
  }

  /** Whether no container of the pod will be started any more. */
  get terminationBegun(): boolean {
    return this.ended || this.#terminating?.progress === 'seen';
  }

  get graceSeconds(): number | undefined {
    return this.#terminating?.graceSeconds;
  }

  /** Enters the state if the transition is valid; returns whether it was. */
  enter(next: Lifecycle, why: string): boolean {
    const before = this.#current;
    const lastedMs =
      'sinceMs' in before && 'sinceMs' in next ? Math.max(0, next.sinceMs - before.sinceMs) : undefined;
    const transition: Transition = { from: before.state, to: next.state, why, lastedMs };
    if (!successors[before.state].includes(next.state)) {
      this.#observer.rejected(transition);
      return false;
    }
    this.#current = next;
    this.#observer.entered(transition);
    return true;
  }

  /** Records that the worker has begun to terminate the pod. */
  beginTermination(): void {
    const terminating = this.#terminating;
    if (terminating !== undefined) this.#current = { ...terminating, progress: 'seen' };
  }

  /** Shortens the grace period; a longer one than the current one is ignored. */
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

/** Converts a lifecycle transition to a step of the pod's history. */
export function historyStep({ to, why, lastedMs }: Transition): PodStep {
  if (to === 'terminating')
    return { stage: 'termination', outcome: 'waiting', message: `the pod terminates because ${why}` };
  if (to === 'terminated') return { stage: 'termination', outcome: 'done', message: why, ms: lastedMs };
  return { stage: 'removed', outcome: 'done', message: why, ms: lastedMs };
}
