import type { Logger } from '../../lib/index.ts';
import type { PodEvent } from '../../pods/index.ts';
import type { LimitDirectory } from './disk-empty-dirs.ts';

/** The part of the node journal used here. */
interface NodeProblems {
  problem(key: string, event: Pick<PodEvent, 'type' | 'reason' | 'message'>): void;
  recovered(key: string, message: string): void;
}

export interface EmptyDirQuotasDeps {
  /** Undefined on a platform without quotas. */
  readonly quotas: DirectoryQuotas | undefined;
  /** Whether limits are set from now on; existing limits are released in either case. */
  readonly mode: 'enforced' | 'off';
  readonly rootDir: string;
  readonly node: NodeProblems;
  readonly logger: Logger;
}

const problemKey = 'empty-dir-quota';
const none = 'this machine has no quotas';

/**
 * Enforces the sizeLimit of emptyDir volumes with project quotas. A failure is reported on the node
 * once per reason; no pod waits or fails.
 */
export class EmptyDirQuotas {
  readonly #deps: EmptyDirQuotasDeps;
  /** Undefined if limits are disabled. */
  readonly limit: LimitDirectory | undefined;

  constructor(deps: EmptyDirQuotasDeps) {
    this.#deps = deps;
    const { quotas, mode } = deps;
    if (mode === 'off') return;
    this.limit = async (directory, bytes, signal) => {
      this.#report(quotas === undefined ? none : await quotas.limit(directory, bytes, signal));
    };
  }

  /** Reports at startup what the first pod would report otherwise. */
  async open(signal: AbortSignal): Promise<void> {
    const { quotas, mode, rootDir } = this.#deps;
    if (mode === 'off') return;
    this.#report(quotas === undefined ? none : await quotas.problemIn(rootDir, signal));
  }

  /** A leftover limit uses no space and is replaced when its project ID is reused. */
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

/** Hard limits of directories by project quotas of their file system; failures never fail a pod. */
export interface DirectoryQuotas {
  /** Why directories below this one cannot have quotas; undefined if they can. */
  problemIn(directory: string, signal: AbortSignal): Promise<string | undefined>;
  /**
   * Limits an empty directory: writes beyond the limit get an error from the kernel. Idempotent,
   * also across processes. Returns why the limit could not be set.
   */
  limit(directory: string, bytes: bigint, signal: AbortSignal): Promise<string | undefined>;
  /**
   * Releases the limits before the directories are removed; a missing limit counts as success.
   * Returns why it failed.
   */
  release(directories: readonly string[], signal: AbortSignal): Promise<string | undefined>;
}
