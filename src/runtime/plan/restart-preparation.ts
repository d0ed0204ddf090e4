import type { Container } from '../../kinds/index.ts';
import { cancelledError, isKind, LinkedController, onAbort } from '../../lib/index.ts';
import {
  newestInstance,
  type ObservedContainer,
  type ObservedPod,
  type Pod,
  type PodUid,
  restartsAfterExit,
} from '../../pods/index.ts';
import { specHash } from '../containers/spec-hash.ts';

/** A container that was created in advance and is not started. */
export interface CreatedContainer {
  readonly id: string;
  /** Path of the container's log file. */
  readonly logPath: string;
}

/** A container whose exit the runtime announced by an event but does not list. */
export interface AnnouncedExit {
  readonly container: Container;
  readonly sandbox: { readonly id: string; readonly attempt: number };
  /** The observed pod, in which the container is changed to exited. */
  readonly observed: ObservedPod;
}

/**
 * Whether the container restarts whatever exit code the announced exit has, so that its next
 * instance can be created in advance. It is started only after the runtime lists the exit.
 */
export function announcedExit(
  pod: Pod,
  observed: ObservedPod,
  containerId: string,
  nowMs: number,
): AnnouncedExit | undefined {
  const [sandbox] = observed.sandboxes;
  const ending = observed.containers.find(({ id }) => id === containerId);
  const container = pod.spec.containers.find(({ name }) => name === ending?.name);
  if (sandbox === undefined || ending === undefined || container === undefined) return undefined;
  const isCurrent =
    sandbox.state === 'ready' &&
    ending.sandboxId === sandbox.id &&
    ending.state === 'running' &&
    ending.hash === specHash(container) &&
    newestInstance(observed, container.name) === ending;
  if (!isCurrent || !alwaysRestarts(pod, container)) return undefined;
  return { container, sandbox, observed: withExited(observed, ending, nowMs) };
}

function alwaysRestarts(pod: Pod, container: Container): boolean {
  if (pod.metadata.deletionTimestamp !== undefined || container.restartPolicyRules !== undefined)
    return false;
  return restartsAfterExit(pod, container, 0);
}

function withExited(observed: ObservedPod, ending: ObservedContainer, nowMs: number): ObservedPod {
  const ended = { ...ending, state: 'exited', finishedAtNs: BigInt(Math.round(nowMs)) * 1_000_000n } as const;
  return { ...observed, containers: observed.containers.map((one) => (one === ending ? ended : one)) };
}

interface Preparation {
  readonly uid: PodUid;
  /** Identifies the sandbox and the container spec for which the container is created. */
  readonly fits: string;
  readonly controller: LinkedController;
  /** Result of the creation; the promise never rejects. */
  readonly outcome: Promise<Outcome>;
}

type Outcome = { readonly made: CreatedContainer } | { readonly error: unknown };

/**
 * The container created in advance, to be used or discarded; or the error of its creation, or none.
 */
export type Prepared =
  | { readonly kind: 'use' | 'discard'; readonly made: CreatedContainer }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'none' };

/** Containers created in advance, at most one per pod and container name. */
export class RestartPreparations {
  readonly #byName = new Map<string, Preparation>();

  get size(): number {
    return this.#byName.size;
  }

  begin(
    key: { readonly uid: PodUid; readonly name: string; readonly fits: string },
    make: (signal: AbortSignal) => Promise<CreatedContainer>,
    signal: AbortSignal,
  ): void {
    const { uid, name, fits } = key;
    if (this.#byName.has(nameOf(uid, name))) return;
    const controller = new LinkedController(signal);
    const made = make(controller.signal).then(
      (one) => ({ made: one }),
      (error: unknown) => ({ error }),
    );
    this.#byName.set(nameOf(uid, name), { uid, fits, controller, outcome: made });
  }

  /**
   * Removes the container created in advance from the map and returns it: for starting if it was
   * created for the given sandbox and spec, otherwise for removal from the runtime.
   */
  async take(uid: PodUid, name: string, fits: string, signal: AbortSignal): Promise<Prepared> {
    const found = this.#byName.get(nameOf(uid, name));
    if (found === undefined) return { kind: 'none' };
    this.#byName.delete(nameOf(uid, name));
    const outcome = await this.#outcome(found, signal);
    const isFit = found.fits === fits;
    if ('made' in outcome) return { kind: isFit ? 'use' : 'discard', made: outcome.made };
    const { error } = outcome;
    return isFit && !isKind(error, 'Cancelled') ? { kind: 'failed', error } : { kind: 'none' };
  }

  /** Waits for the creation of the container. Aborting the waiter also aborts the creation. */
  async #outcome({ outcome, controller }: Preparation, signal: AbortSignal): Promise<Outcome> {
    using _link = onAbort(signal, (reason) => controller.abort(reason));
    try {
      return await outcome;
    } finally {
      controller[Symbol.dispose]();
    }
  }

  /**
   * Cancels the container creations of a terminating pod. Containers already created are removed
   * with the pod's sandbox.
   */
  async cancel(uid: PodUid): Promise<void> {
    const ofPod = [...this.#byName].filter(([, one]) => one.uid === uid);
    for (const [key, { controller }] of ofPod) {
      this.#byName.delete(key);
      controller.abort(cancelledError('The pod is terminating'));
    }
    await Promise.all(ofPod.map(([, { outcome }]) => outcome));
    for (const [, { controller }] of ofPod) controller[Symbol.dispose]();
  }
}

function nameOf(uid: PodUid, name: string): string {
  return `${uid}/${name}`;
}
