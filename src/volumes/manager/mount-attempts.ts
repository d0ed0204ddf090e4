import { KubelingError } from '../../lib/index.ts';
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
