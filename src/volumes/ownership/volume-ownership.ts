import type { Clock, Logger } from '../../lib/index.ts';
import type { Pod, PodJournal } from '../../pods/index.ts';
import type { VolumeFiles } from '../files/volume-files.ts';

export interface SetVolumeOwnershipDeps {
  readonly files: VolumeFiles;
  /** Told while the files of a volume are given to the group of a pod; nobody is unless given. */
  readonly groupNews?: ((pod: Pod, volume: string) => WalkProgress & Disposable) | undefined;
  /** Does the walk, and tells how long it took. */
  readonly timed?: ((work: () => Promise<void>) => Promise<void>) | undefined;
}

/** Gives all files of a volume to the group, unless the pod wants that only where they are not its yet, and they are. */
export async function setVolumeOwnership(
  { files, groupNews, timed = (work) => work() }: SetVolumeOwnershipDeps,
  pod: Pod,
  { name, directory }: { readonly name: string; readonly directory: string },
  group: number,
): Promise<void> {
  const isOnce = pod.spec.securityContext?.fsGroupChangePolicy === 'OnRootMismatch';
  if (isOnce && isOwnedByGroup(group, await files.ownerOf(directory))) return;
  using news = groupNews?.(pod, name);
  await timed(() => files.giveToGroup(directory, group, 'write', news));
}

/** What the group of a volume may do with its root; new files are the group's, too. */
const groupsRoot = 0o2770;

/** Whether the root of a volume says that all of it was given to the group: it is given last. */
export function isOwnedByGroup(
  wanted: number,
  { group, mode }: { readonly group: number; readonly mode: number },
): boolean {
  return group === wanted && (mode & groupsRoot) === groupsRoot;
}

export interface OwnershipProgressDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: Pick<PodJournal, 'event'>;
}

/** What whoever gives files to a group tells meanwhile. */
export interface WalkProgress {
  /** How many files it has seen. */
  processed(count: number): void;
  /** So many could not be given, the first of them for this reason. */
  unchanged(count: number, because: string): void;
}

const firstMs = 30_000;
const nextMs = 60_000;

/** Tells of a pod whose volume has so many files that giving them to its group takes long, until it is disposed of. */
export class OwnershipProgress implements WalkProgress, Disposable {
  readonly #deps: OwnershipProgressDeps;
  readonly #pod: Pod;
  readonly #volume: string;
  #seen = 0;
  #timer: Disposable;

  constructor(deps: OwnershipProgressDeps, pod: Pod, volume: string) {
    this.#deps = deps;
    this.#pod = pod;
    this.#volume = volume;
    this.#timer = deps.clock.timer(firstMs, () => this.#report(''));
  }

  processed(count: number): void {
    this.#seen = count;
  }

  unchanged(count: number, because: string): void {
    const { name, namespace, uid } = this.#pod.metadata;
    const fields = { pod: `${namespace}/${name}`, podUid: uid, volume: this.#volume, count, because };
    this.#deps.logger.warn('Files of a volume could not be given to the group of the pod', fields);
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
    this.#timer = this.#deps.clock.timer(nextMs, () => this.#report(`, processed ${this.#seen} files`));
  }
}
