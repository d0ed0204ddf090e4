import { KubelingError } from '../../lib/index.ts';
import type { PodUid } from '../../pods/index.ts';

interface PendingAdmission {
  readonly controller: AbortController;
  readonly work: Promise<void>;
}

/**
 * The pods whose admission is not decided yet, in the order in which their admission began. This
 * list is separate from `PodAdmission` because eviction and housekeeping, which are built earlier,
 * must skip these pods.
 */
export class PendingAdmissions implements AsyncDisposable {
  readonly #pods = new Map<PodUid, PendingAdmission>();

  get size(): number {
    return this.#pods.size;
  }

  has(uid: PodUid): boolean {
    return this.#pods.has(uid);
  }

  /**
   * Returns the pending pods whose admission began after that of the given pod: they must not claim
   * resources before the given pod.
   */
  after(uid: PodUid): ReadonlySet<PodUid> {
    const order = [...this.#pods.keys()];
    const own = order.indexOf(uid);
    return new Set(own === -1 ? [] : order.slice(own + 1));
  }

  /** Starts a pending admission; replaces an earlier one of the same pod. */
  begin(uid: PodUid, work: (signal: AbortSignal) => Promise<void>): void {
    this.cancel(uid);
    const controller = new AbortController();
    this.#pods.set(uid, { controller, work: work(controller.signal) });
  }

  decided(uid: PodUid): void {
    this.#pods.delete(uid);
  }

  /**
   * Cancels the admission of a pod that was removed or is terminating; no decision is reported for
   * the pod.
   */
  cancel(uid: PodUid): void {
    const message = 'Cannot admit the pod: it was removed or its admission was restarted';
    this.#pods.get(uid)?.controller.abort(new KubelingError('CANCELLED', message));
    this.#pods.delete(uid);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const pending = [...this.#pods.values()];
    for (const uid of this.#pods.keys()) this.cancel(uid);
    await Promise.all(pending.map(({ work }) => work));
  }
}
