import type { Clock, Logger } from '../../lib/index.ts';
import type { Pod, PodJournal } from '../../pods/index.ts';
import type { VolumeFiles } from '../files/volume-files.ts';

export interface SetVolumeOwnershipDeps {
  readonly files: VolumeFiles;
  /** Receives the progress of ownership changes; progress is not reported if undefined. */
  readonly reportOwnership?: ((pod: Pod, volume: string) => WalkProgress & Disposable) | undefined;
  /** Runs the ownership change and observes its duration. */
  readonly timed?: ((work: () => Promise<void>) => Promise<void>) | undefined;
}

/**
 * Sets the group of all files of a volume, unless the policy is OnRootMismatch and the root
 * directory has the group.
 */
export async function setVolumeOwnership(
  { files, reportOwnership, timed = (work) => work() }: SetVolumeOwnershipDeps,
  pod: Pod,
  { name, directory }: { readonly name: string; readonly directory: string },
  group: number,
): Promise<void> {
  const isOnce = pod.spec.securityContext?.fsGroupChangePolicy === 'OnRootMismatch';
  if (isOnce && isOwnedByGroup(group, await files.ownerOf(directory))) return;
  using progress = reportOwnership?.(pod, name);
  await timed(() => files.giveToGroup(directory, group, 'write', progress));
}

/** The mode of the volume root: the group has access, and new files inherit the group (setgid). */
const groupsRoot = 0o2770;

/** Returns whether the volume root has the group and mode, which a completed walk sets last. */
function isOwnedByGroup(
  desiredGroup: number,
  { group, mode }: { readonly group: number; readonly mode: number },
): boolean {
  return group === desiredGroup && (mode & groupsRoot) === groupsRoot;
}

export interface OwnershipProgressDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: Pick<PodJournal, 'event'>;
}

/** Receives the progress of an ownership change. */
export interface WalkProgress {
  /** Called with the number of files processed so far. */
  processed(count: number): void;
  /** Called with the number of files that could not be changed, and the first reason. */
  unchanged(count: number, because: string): void;
}

const firstMs = 30_000;
const nextMs = 60_000;

/** Reports a slow ownership change as events of the pod, until it is disposed. */
export class OwnershipProgress implements WalkProgress, Disposable {
  readonly #deps: OwnershipProgressDeps;
  readonly #pod: Pod;
  readonly #volume: string;
  #visited = 0;
  #timer: Disposable;

  constructor(deps: OwnershipProgressDeps, pod: Pod, volume: string) {
    this.#deps = deps;
    this.#pod = pod;
    this.#volume = volume;
    this.#timer = deps.clock.timer(firstMs, () => this.#report(''));
  }

  processed(count: number): void {
    this.#visited = count;
  }

  unchanged(count: number, because: string): void {
    const { name, namespace, uid } = this.#pod.metadata;
    const fields = { pod: `${namespace}/${name}`, podUid: uid, volume: this.#volume, count, because };
    this.#deps.logger.warn('Failed to set the group of some volume files', fields);
  }

  [Symbol.dispose](): void {
    this.#timer[Symbol.dispose]();
  }

  #report(more: string): void {
    const message = `Setting volume ownership for ${this.#volume} is taking longer than expected, consider using OnRootMismatch${more}`;
    this.#deps.journal.event(this.#pod, {
      type: 'Warning',
      reason: 'VolumePermissionChangeInProgress',
      message,
    });
    this.#timer = this.#deps.clock.timer(nextMs, () => this.#report(`, processed ${this.#visited} files`));
  }
}
