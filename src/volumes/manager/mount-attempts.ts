import { type Clock, describeError, KeyedBackoff, KubelingError, type Random } from '../../lib/index.ts';
import type { PodUid } from '../../pods/index.ts';

/** One attempt to make the volumes of a pod. */
export interface MountAttempt {
  /** The pod has that volume. */
  done(volume: string): void;
  /** All have come or failed; these have failed. */
  end(problems: readonly { readonly volume: string; readonly message: string }[]): void;
}

interface Known {
  readonly waiting: ReadonlySet<string>;
  /** What went wrong last, by volume. */
  readonly errors: ReadonlyMap<string, string>;
}

/** Which volumes pods wait for, and what went wrong with each when it was last tried. */
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
    // One that was given up may still come to its end beside the next.
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

  /** What to tell of a pod whose volumes were waited for long enough; undefined when it waits for none. */
  late(uid: PodUid): string | undefined {
    const { waiting, errors } = this.#known.get(uid) ?? {};
    if (waiting === undefined || waiting.size === 0) return undefined;
    const names = [...waiting].toSorted();
    const each = names.map((name) => `"${name}": ${errors?.get(name) ?? 'still being mounted'}`);
    return unable(names, [], ['timed out waiting for the condition', ...each]);
  }
}

/** What cannot be mounted, in the known words; attaching is not for a node to do. */
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

/** The pod is better off elsewhere. */
export function noRoom(message: string): KubelingError {
  const text = `Node has reached its volume attachment limit, rejecting pod. ${message}`;
  return new KubelingError('VOLUME_ATTACH_LIMIT', text);
}

/** Names the stage of mounting a volume in which the work fails, unless the work has done so itself. */
export async function atStage<T>(stage: string, name: string, work: Promise<T> | T): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof KubelingError && error.details['stage'] !== undefined) throw error;
    throw stageError(stage, name, describeError(error), retryAt(error), error);
  }
}

/** With a blank before the colon, as users of events have come to expect. */
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

/** When it may be tried again, if whatever failed says so. */
function retryAt(error: unknown): number | undefined {
  const found = error instanceof KubelingError ? error.details['retryAtMs'] : undefined;
  return typeof found === 'number' ? found : undefined;
}

const waits = { baseMs: 500, maxMs: 122_000, jitter: 0.2 };

export interface RenewalsDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** The pod is to be looked at again, after this long at the latest. */
  readonly lookAgain: (uid: PodUid, delayMs: number) => void;
}

/** Pods that go on with old content of volumes: the new one is tried again soon at first, then ever more rarely. */
export class RefreshRetries {
  readonly #deps: RenewalsDeps;
  readonly #backoff: KeyedBackoff<PodUid>;

  constructor(deps: RenewalsDeps) {
    this.#deps = deps;
    this.#backoff = new KeyedBackoff({ policy: waits, random: deps.random });
  }

  failed(uid: PodUid): void {
    const { clock, lookAgain } = this.#deps;
    lookAgain(uid, this.#backoff.fail(uid, { nowMs: clock.monotonicMs() }));
  }

  /** Its content is new, or nobody needs it any more. */
  forget(uid: PodUid): void {
    this.#backoff.delete(uid);
  }
}
