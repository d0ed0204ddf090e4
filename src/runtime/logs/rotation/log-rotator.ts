import { posix } from 'node:path';
import type { CriClient } from '../../../cri/index.ts';
import { type Clock, errnoOf, type Logger, withDeadline } from '../../../lib/index.ts';
import type { LogFollowers } from '../container-logs.ts';
import {
  type LogCleanupPlan,
  type LogOwner,
  type NamedLog,
  nextStamp,
  planLogCleanup,
  type RotationPolicy,
  readLogName,
  removableLogs,
} from './log-cleanup.ts';
import type { RotationFiles } from './rotation-files.ts';

export interface LogRotatorDeps {
  readonly cri: Pick<CriClient, 'reopenContainerLog'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly files: RotationFiles;
  readonly policy: RotationPolicy;
  /** The readers that follow logs; none if undefined. */
  readonly followers?: Pick<LogFollowers, 'openRemaining'> | undefined;
}

const catchUpMs = 3_000;

/**
 * Rotates and removes the log files of one container. Callers serialize the calls for one
 * container.
 */
export class LogRotator {
  readonly #deps: LogRotatorDeps;

  constructor(deps: LogRotatorDeps) {
    this.#deps = deps;
  }

  /**
   * Renames the log and requests the runtime to reopen it. Restores the name and rejects when the
   * runtime fails.
   */
  async rotate(containerId: string, path: string, owner: LogOwner, signal: AbortSignal): Promise<void> {
    const { cri, files } = this.#deps;
    const rotated = await this.#rotatedName(path, owner);
    await this.#withFreeSpace(path, owner, () => files.rename(path, rotated));
    try {
      await this.#withFreeSpace(
        path,
        owner,
        async () => void (await cri.reopenContainerLog({ containerId }, signal)),
      );
    } catch (error) {
      // When the runtime has reopened the log despite its error, the new file is kept.
      await files.restore(rotated, path);
      throw error;
    }
  }

  /** Removes surplus log files; returns the paths to compress. */
  async cleanUp(
    directory: string,
    owner: LogOwner,
    isBeingWritten: (path: string) => boolean,
  ): Promise<LogCleanupPlan['compress']> {
    const { files, policy } = this.#deps;
    const logs = await this.#logs(directory);
    const plan = planLogCleanup(logs, owner, policy);
    if (plan.remove.length > 0) await this.#notifyFollowers(directory);
    for (const name of plan.remove) {
      const path = posix.join(directory, name);
      if (!isBeingWritten(path)) await files.remove(path);
    }
    return plan.compress.map((name) => posix.join(directory, name));
  }

  /** Returns the total size of all log files that can be removed. */
  async removableBytes(directory: string, owner: LogOwner): Promise<number> {
    return removableLogs(await this.#logs(directory), owner).reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /**
   * Removes the oldest log file that can be removed, to free disk space; returns whether a file was
   * removed.
   */
  async removeOldest(directory: string, owner: LogOwner): Promise<boolean> {
    const [oldest] = removableLogs(await this.#logs(directory), owner);
    if (oldest === undefined) return false;
    const path = posix.join(directory, oldest.name);
    await this.#notifyFollowers(directory);
    await this.#deps.files.remove(path);
    this.#deps.logger.warn('Removed oldest container log on full disk', { path });
    return true;
  }

  /**
   * Lets followers open all files before some are removed; a follower that takes too long misses
   * the removed files.
   */
  async #notifyFollowers(directory: string): Promise<void> {
    const { clock, followers } = this.#deps;
    if (followers === undefined) return;
    const limit = { clock, ms: catchUpMs, what: `let readers of ${directory} catch up` };
    await withDeadline(limit, () => followers.openRemaining(directory), new AbortController().signal).catch(
      () => {},
    );
  }

  async #withFreeSpace(path: string, owner: LogOwner, act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (!isNoSpace(error) || !(await this.removeOldest(posix.dirname(path), owner))) throw error;
      await act();
    }
  }

  async #rotatedName(path: string, owner: LogOwner): Promise<string> {
    const logs = await this.#logs(posix.dirname(path));
    const stamps = logs.filter(({ instance }) => instance === owner.running).map(({ stamp }) => stamp);
    const newest = stamps
      .filter((stamp) => stamp !== '')
      .sort()
      .at(-1);
    return `${path}.${nextStamp(this.#deps.clock.now(), newest)}`;
  }

  async #logs(directory: string): Promise<readonly NamedLog[]> {
    return (await this.#deps.files.list(directory)).flatMap((file) => readLogName(file) ?? []);
  }
}

/** Whether the error is a full disk; errors of the runtime are recognized by their text. */
export function isNoSpace(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const isFull = errnoOf(error) === 'ENOSPC' || /no space left on device/i.test(error.message);
  return isFull || (error.cause !== undefined && isNoSpace(error.cause));
}
