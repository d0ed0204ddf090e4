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
  /** Those who read these logs; nobody does unless given. */
  readonly followers?: Pick<LogFollowers, 'openRemaining'> | undefined;
}

const catchUpMs = 3_000;

/** What is done to the files of one container's logs. One call for one container at a time is the caller's duty. */
export class LogRotator {
  readonly #deps: LogRotatorDeps;

  constructor(deps: LogRotatorDeps) {
    this.#deps = deps;
  }

  /**
   * Gives the log a name of its own and has the runtime begin another. When the runtime does not, the log keeps its
   * name. Rejects with what went wrong.
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
      // A runtime that did it though it does not say so has made another file by now; that one stays.
      await files.putBack(rotated, path);
      throw error;
    }
  }

  /** Removes what is too much; answers what is to be compressed, as paths. */
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

  /** What could be given back by removing all that may go. */
  async removableBytes(directory: string, owner: LogOwner): Promise<number> {
    return removableLogs(await this.#logs(directory), owner).reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Removes the oldest log that may go, for room on a full disk; answers whether there was one. */
  async removeOldest(directory: string, owner: LogOwner): Promise<boolean> {
    const [oldest] = removableLogs(await this.#logs(directory), owner);
    if (oldest === undefined) return false;
    const path = posix.join(directory, oldest.name);
    await this.#notifyFollowers(directory);
    await this.#deps.files.remove(path);
    this.#deps.logger.warn('Removed the oldest log of a container as the disk is full', { path });
    return true;
  }

  /** Whoever follows has hold of a file before it goes; somebody who takes too long for that will miss it. */
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

/** Also as runtimes tell it. */
export function isNoSpace(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const isFull = errnoOf(error) === 'ENOSPC' || /no space left on device/i.test(error.message);
  return isFull || (error.cause !== undefined && isNoSpace(error.cause));
}
