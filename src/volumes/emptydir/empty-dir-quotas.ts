import type { Logger } from '../../lib/index.ts';
import type { PodEvent } from '../../pods/index.ts';
import type { LimitDirectory } from './disk-empty-dirs.ts';

/** The slice of the node journal that is used here. */
interface NodeTroubles {
  trouble(key: string, event: Pick<PodEvent, 'type' | 'reason' | 'message'>): void;
  mended(key: string, message: string): void;
}

export interface EmptyDirQuotasDeps {
  /** Undefined on a machine without. */
  readonly quotas: DirectoryQuotas | undefined;
  /** Whether directories are held to their size from now on; those that are held already are let go in the end either way. */
  readonly wish: 'enforced' | 'off';
  readonly rootDir: string;
  readonly node: NodeTroubles;
  readonly logger: Logger;
}

const trouble = 'empty-dir-quota';
const none = 'this machine has no quotas';

/**
 * Empty directories that the kernel holds to their size. What cannot be held is told of the node, once for as long as it
 * is the same, and no pod has to wait or fail for it.
 */
export class EmptyDirQuotas {
  readonly #deps: EmptyDirQuotasDeps;
  /** Undefined when nobody wishes for any. */
  readonly limit: LimitDirectory | undefined;

  constructor(deps: EmptyDirQuotasDeps) {
    this.#deps = deps;
    const { quotas, wish } = deps;
    if (wish === 'off') return;
    this.limit = async (directory, bytes, signal) => {
      this.#report(quotas === undefined ? none : await quotas.limit(directory, bytes, signal));
    };
  }

  /** Tells at the start what would else be told with the first pod. */
  async open(signal: AbortSignal): Promise<void> {
    const { quotas, wish, rootDir } = this.#deps;
    if (wish === 'off') return;
    this.#report(quotas === undefined ? none : await quotas.problemIn(rootDir, signal));
  }

  /** A limit that stays takes no room, and is set anew for whoever gets its number next. */
  async release(directories: readonly string[], signal: AbortSignal): Promise<void> {
    const problem = await this.#deps.quotas?.release(directories, signal);
    if (problem !== undefined)
      this.#deps.logger.warn('The quota of an empty directory stays', { directories, problem });
  }

  #report(problem: string | undefined): void {
    const { node } = this.#deps;
    if (problem === undefined) {
      node.mended(trouble, 'emptyDir volumes are held to their sizeLimit by the kernel');
      return;
    }
    const message = `emptyDir volumes are not held to their sizeLimit by the kernel: ${problem}`;
    node.trouble(trouble, { type: 'Warning', reason: 'EmptyDirQuotaUnavailable', message });
  }
}

/** Hard limits to what directories hold, as project quotas of their file system; nothing of it makes a pod fail. */
export interface DirectoryQuotas {
  /** Why directories in this one cannot have any; undefined when they can. */
  problemIn(directory: string, signal: AbortSignal): Promise<string | undefined>;
  /**
   * Whoever writes more below the directory, which is empty, gets an error from the kernel. May be repeated, by another
   * process too. Answers why it cannot be had.
   */
  limit(directory: string, bytes: bigint, signal: AbortSignal): Promise<string | undefined>;
  /** Takes the limits away, before the directories are removed; fine for those without. Answers why it cannot be done. */
  release(directories: readonly string[], signal: AbortSignal): Promise<string | undefined>;
}
