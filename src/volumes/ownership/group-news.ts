import type { Clock, Logger } from '../../lib/index.ts';
import type { Pod, PodJournal } from '../../pods/index.ts';

export interface GroupNewsDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: Pick<PodJournal, 'event'>;
}

/** What whoever gives files to a group tells meanwhile. */
export interface WalkNews {
  /** How many files it has seen. */
  seen(count: number): void;
  /** So many could not be given, the first of them for this reason. */
  unchanged(count: number, because: string): void;
}

const firstMs = 30_000;
const nextMs = 60_000;

/** Tells of a pod whose volume has so many files that giving them to its group takes long, until it is disposed of. */
export class GroupNews implements WalkNews, Disposable {
  readonly #deps: GroupNewsDeps;
  readonly #pod: Pod;
  readonly #volume: string;
  #seen = 0;
  #timer: Disposable;

  constructor(deps: GroupNewsDeps, pod: Pod, volume: string) {
    this.#deps = deps;
    this.#pod = pod;
    this.#volume = volume;
    this.#timer = deps.clock.timer(firstMs, () => this.#tell(''));
  }

  seen(count: number): void {
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

  #tell(more: string): void {
    const message = `Setting volume ownership for ${this.#volume} is taking longer than expected, consider using OnRootMismatch${more}`;
    this.#deps.journal.event(this.#pod, {
      type: 'Warning',
      reason: 'VolumePermissionChangeInProgress',
      message,
    });
    this.#timer = this.#deps.clock.timer(nextMs, () => this.#tell(`, processed ${this.#seen} files`));
  }
}
