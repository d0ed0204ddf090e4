import type { Logger } from '../../lib/index.ts';
import type { PodEvent } from '../../pods/index.ts';
import type { LimitDirectory } from './disk-empty-dirs.ts';

/** The methods of the NodeJournal class that report and clear problems of the node. */
interface NodeProblems {
  problem(key: string, event: Pick<PodEvent, 'type' | 'reason' | 'message'>): void;
  recovered(key: string, message: string): void;
}

export interface EmptyDirQuotasDeps {
  /** Quotas of the machine; undefined on a platform without quotas. */
  readonly quotas: DirectoryQuotas | undefined;
  /** Whether new limits are set; existing limits are released in either case. */
  readonly mode: 'enforced' | 'off';
  readonly rootDir: string;
  readonly node: NodeProblems;
  readonly logger: Logger;
}

const problemKey = 'empty-dir-quota';
const none = 'this machine has no quotas';

/**
 * Enforces the sizeLimit of emptyDir volumes with project quotas. A failure is reported on the node
 * once per reason and does not delay or reject a pod.
 */
export class EmptyDirQuotas {
  readonly #deps: EmptyDirQuotasDeps;
  /** Function that limits a directory; undefined when limits are disabled. */
  readonly limit: LimitDirectory | undefined;

  constructor(deps: EmptyDirQuotasDeps) {
    this.#deps = deps;
    const { quotas, mode } = deps;
    if (mode === 'off') return;
    this.limit = async (directory, bytes, signal) => {
      this.#report(quotas === undefined ? none : await quotas.limit(directory, bytes, signal));
    };
  }

  /**
   * Reports at kubelet start why quotas cannot be used, instead of when the first emptyDir is
   * created.
   */
  async open(signal: AbortSignal): Promise<void> {
    const { quotas, mode, rootDir } = this.#deps;
    if (mode === 'off') return;
    this.#report(quotas === undefined ? none : await quotas.problemIn(rootDir, signal));
  }

  /**
   * Releases the limits of directories before their removal. A limit that remains uses no space and
   * is replaced when its project id is reused.
   */
  async release(directories: readonly string[], signal: AbortSignal): Promise<void> {
    const problem = await this.#deps.quotas?.release(directories, signal);
    if (problem !== undefined)
      this.#deps.logger.warn('Failed to release the quota of an emptyDir', { directories, problem });
  }

  #report(problem: string | undefined): void {
    const { node } = this.#deps;
    if (problem === undefined) {
      node.recovered(problemKey, 'emptyDir volumes are held to their sizeLimit by the kernel');
      return;
    }
    const message = `emptyDir volumes are not held to their sizeLimit by the kernel: ${problem}`;
    node.problem(problemKey, { type: 'Warning', reason: 'EmptyDirQuotaUnavailable', message });
  }
}

/** Limits directories with project quotas of their file system; failures never reject a pod. */
export interface DirectoryQuotas {
  /**
   * Returns why directories below the given directory cannot have quotas; undefined when they can.
   */
  problemIn(directory: string, signal: AbortSignal): Promise<string | undefined>;
  /**
   * Limits an empty directory: the kernel rejects writes beyond the limit. Idempotent, also across
   * processes. Returns why the limit could not be set.
   */
  limit(directory: string, bytes: bigint, signal: AbortSignal): Promise<string | undefined>;
  /**
   * Releases the limits before the directories are removed; a missing limit counts as success.
   * Returns the reason of a failure.
   */
  release(directories: readonly string[], signal: AbortSignal): Promise<string | undefined>;
}
