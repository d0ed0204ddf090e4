import { readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import {
  absoluteArgument,
  type Clock,
  type CommandResult,
  errnoOf,
  KubelingError,
  mountArguments,
  readMountTable,
  runCommand,
  umountArguments,
} from '../../lib/index.ts';
import { checkedMountOptions, commandFailure } from '../manager/mount-options.ts';
import type { NetworkMount, NetworkMounts, Unmounting } from './nfs-volumes.ts';

export interface NetworkLimits {
  readonly mountMs: number;
  readonly unmountMs: number;
  readonly forceMs: number;
  readonly checkMs: number;
}

export interface HostNetworkMountsDeps {
  readonly clock: Clock;
  /** Called after each mount attempt, which may have changed the mount table. */
  readonly mounted: () => void;
  readonly limits?: NetworkLimits;
  /** The PATH in which `mount`, `umount` and `stat` are found. */
  readonly path?: string | undefined;
}

/**
 * The deadlines of the programs. That of `mount` is the longest, because a server may start slowly.
 */
const usualLimits: NetworkLimits = {
  mountMs: 120_000,
  unmountMs: 60_000,
  forceMs: 30_000,
  checkMs: 30_000,
};

const unmountFlags: Readonly<Record<Unmounting, readonly string[]>> = {
  plain: [],
  force: ['-f'],
  lazy: ['-l'],
};

/** Mounts network file systems with the programs `mount`, `umount` and `stat` of the PATH. */
export class HostNetworkMounts implements NetworkMounts {
  readonly #clock: Clock;
  readonly #limits: NetworkLimits;
  readonly #mounted: () => void;
  readonly #env: Readonly<Record<string, string | undefined>>;
  /**
   * Directories whose program is blocked in the kernel. No other program is started for such a
   * directory except a forced unmount, which may release the blocked one, and a lazy unmount, which
   * does not contact the server.
   */
  readonly #stuck = { any: new Set<string>(), force: new Set<string>(), lazy: new Set<string>() };

  constructor({ clock, mounted, limits = usualLimits, path = process.env['PATH'] }: HostNetworkMountsDeps) {
    this.#clock = clock;
    this.#limits = limits;
    this.#mounted = mounted;
    // Fixes the locale, because the output of the programs is parsed.
    this.#env = { PATH: path, LC_ALL: 'C' };
  }

  /** The number of programs that are blocked in the kernel. */
  get stuck(): number {
    return Object.values(this.#stuck).reduce((sum, { size }) => sum + size, 0);
  }

  async isMounted(directory: string): Promise<boolean> {
    const resolved = await canonical(directory);
    if (resolved === undefined) return false;
    const mounts = await readMountTable((path) => readFile(path, 'utf8'));
    return mounts.some(({ mountPoint }) => mountPoint === resolved);
  }

  async mount({ type, source, directory, options }: NetworkMount, signal: AbortSignal): Promise<void> {
    const checked = checkedMountOptions(options);
    const args = mountArguments({ type, options: checked, source, target: directory });
    // `mounted` is called after a failure too, because the mount may exist nevertheless.
    const result = await this.#run('mount', args, directory, this.#limits.mountMs, signal).finally(
      this.#mounted,
    );
    const failure = commandFailure(result);
    if (failure === undefined) return;
    throw new KubelingError('VOLUME_UNUSABLE', `mount failed: ${failure} (mount ${args.join(' ')})`);
  }

  async unmount(directory: string, how: Unmounting, signal: AbortSignal): Promise<'done' | 'busy'> {
    const { unmountMs, forceMs } = this.#limits;
    // Uses the path as it appears in the mount table; `umount` must not resolve the path, because
    // that would contact the server.
    const resolved = (await canonical(directory)) ?? directory;
    const args = umountArguments([...unmountFlags[how], '--no-canonicalize'], resolved);
    const limitMs = how === 'plain' ? unmountMs : forceMs;
    const failure = commandFailure(await this.#run('umount', args, directory, limitMs, signal));
    if (failure === undefined || failure.includes('not mounted')) return 'done';
    if (failure.includes('busy')) return 'busy';
    throw new KubelingError('VOLUME_REMOVE', `unmount failed: ${failure} (umount ${args.join(' ')})`);
  }

  async check(directory: string, signal: AbortSignal): Promise<'answers' | 'broken'> {
    const { checkMs } = this.#limits;
    const result = await this.#run(
      'stat',
      ['-c', '%i', '--', absoluteArgument('stat', directory)],
      directory,
      checkMs,
      signal,
    );
    return commandFailure(result) === undefined ? 'answers' : 'broken';
  }

  async #run(
    file: string,
    args: readonly string[],
    directory: string,
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<CommandResult> {
    const stuck = this.#stuck[queueOf(args)];
    if (stuck.has(directory))
      throw new KubelingError(
        'DEADLINE_EXCEEDED',
        `Cannot run ${file} at ${directory}: an earlier program for this directory is blocked in the kernel and cannot be killed`,
      );
    const onAbandoned = (exited: Promise<void>) => {
      stuck.add(directory);
      void exited.then(() => stuck.delete(directory));
    };
    const command = { file, args, env: this.#env, clock: this.#clock, deadlineMs, onAbandoned };
    return await runCommand(command, signal);
  }
}

function queueOf([flag]: readonly string[]): 'any' | 'force' | 'lazy' {
  if (flag === '-f') return 'force';
  return flag === '-l' ? 'lazy' : 'any';
}

/**
 * Resolves the parents of the directory without accessing the directory itself. Undefined if a
 * parent is missing.
 */
async function canonical(directory: string): Promise<string | undefined> {
  try {
    return join(await realpath(dirname(directory)), basename(directory));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
