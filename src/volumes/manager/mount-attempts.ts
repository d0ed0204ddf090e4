import { type Clock, describeError, KeyedBackoff, KubelingError, type Random } from '../../lib/index.ts';
import type { PodUid } from '../../pods/index.ts';

/** One attempt to set up the volumes of a pod. */
export interface MountAttempt {
  /** Marks the volume as set up. */
  done(volume: string): void;
  /** Ends the attempt and records the problems of the failed volumes. */
  end(problems: readonly { readonly volume: string; readonly message: string }[]): void;
}

interface Known {
  readonly waiting: ReadonlySet<string>;
  /** The last error of each volume that is not set up yet. */
  readonly errors: ReadonlyMap<string, string>;
}

/** Tracks the volumes that each starting pod waits for, and the last error of each volume. */
export class MountAttempts {
  readonly #known = new Map<PodUid, Known>();

  get size(): number {
    return this.#known.size;
  }

  begin(uid: PodUid, volumes: readonly string[]): MountAttempt {
    const waiting = new Set(volumes);
    const errors = new Map(this.#known.get(uid)?.errors);
    const known = { waiting, errors };
    this.#known.set(uid, known);
    // A cancelled attempt may end after the next attempt has started, and must then not remove the
    // record of the next attempt.
    const isNewest = () => this.#known.get(uid) === known;
    return {
      done(volume) {
        waiting.delete(volume);
        errors.delete(volume);
      },
      end: (problems) => {
        if (problems.length === 0 && isNewest()) this.#known.delete(uid);
        for (const { volume, message } of problems) errors.set(volume, message);
      },
    };
  }

  forget(uid: PodUid): void {
    this.#known.delete(uid);
  }

  /** Returns the message of a mount timeout; undefined if the pod waits for no volume. */
  late(uid: PodUid): string | undefined {
    const { waiting, errors } = this.#known.get(uid) ?? {};
    if (waiting === undefined || waiting.size === 0) return undefined;
    const names = [...waiting].toSorted();
    const each = names.map((name) => `"${name}": ${errors?.get(name) ?? 'still being mounted'}`);
    return unable(names, [], ['timed out waiting for the condition', ...each]);
  }
}

/** Builds the Go kubelet's message of a mount timeout; unattached volumes are never listed. */
export function unable(
  unmounted: readonly string[],
  unprocessed: readonly string[],
  causes: readonly string[],
): string {
  const listed = (names: readonly string[]) => `[${names.toSorted().join(' ')}]`;
  const lists = `unmounted volumes=${listed(unmounted)}, unattached volumes=[], failed to process volumes=${listed(unprocessed)}`;
  return `Unable to attach or mount volumes: ${lists}: ${causes.join('; ')}`;
}

export function namesOf(problems: readonly { readonly volume: string }[]): readonly string[] {
  return problems.map(({ volume }) => volume);
}

/** Builds the error that rejects the pod, so that the scheduler places it on another node. */
export function noRoom(message: string): KubelingError {
  const text = `Node has reached its volume attachment limit, rejecting pod. ${message}`;
  return new KubelingError('VOLUME_ATTACH_LIMIT', text);
}

/** Adds the name of the failed stage to an error of `work`, unless the error already has one. */
export async function atStage<T>(stage: string, name: string, work: Promise<T> | T): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof KubelingError && error.details['stage'] !== undefined) throw error;
    throw stageError(stage, name, describeError(error), retryAt(error), error);
  }
}

/** The event message has a blank before the colon, as in the Go kubelet. */
export function stageError(
  stage: string,
  volume: string,
  why: string,
  retryAtMs?: number,
  cause?: unknown,
): KubelingError {
  const details = { stage, retryAtMs };
  return new KubelingError('VOLUME_UNUSABLE', `${stage} for volume "${volume}" : ${why}`, { details, cause });
}

/**
 * Returns the time at which the failed operation may be retried; undefined if the error has none.
 */
function retryAt(error: unknown): number | undefined {
  const found = error instanceof KubelingError ? error.details['retryAtMs'] : undefined;
  return typeof found === 'number' ? found : undefined;
}

const waits = { baseMs: 500, maxMs: 122_000, jitter: 0.2 };

export interface RefreshRetriesDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** Requests a sync of the pod, which starts after the given delay at the latest. */
  readonly requestSync: (uid: PodUid, delayMs: number) => void;
}

/** Retries the refresh of volume content of running pods with a growing back-off. */
export class RefreshRetries {
  readonly #deps: RefreshRetriesDeps;
  readonly #backoff: KeyedBackoff<PodUid>;

  constructor(deps: RefreshRetriesDeps) {
    this.#deps = deps;
    this.#backoff = new KeyedBackoff({ policy: waits, random: deps.random });
  }

  failed(uid: PodUid): void {
    const { clock, requestSync } = this.#deps;
    requestSync(uid, this.#backoff.fail(uid, { nowMs: clock.monotonicMs() }));
  }

  /**
   * Clears the back-off of the pod; called after a successful refresh, or when the pod is removed.
   */
  forget(uid: PodUid): void {
    this.#backoff.delete(uid);
  }
}
