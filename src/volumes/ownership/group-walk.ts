import { constants, type PathLike, type Stats } from 'node:fs';
import { chmod, chown, type FileHandle, lchown, lstat, open, readdir } from 'node:fs/promises';

/** The group to set on the files of a volume, and its access to them. */
export interface GroupOwnership {
  readonly group: number;
  /**
   * The mode bits to add to files; directories also become searchable and inherit the group. If
   * undefined, only the group is changed.
   */
  readonly bits?: number | undefined;
}

export interface GroupWalkResult {
  readonly visited: number;
  /** The number of files that could not be changed, and the first reason. */
  readonly unchanged: number;
  readonly because?: string | undefined;
}

/**
 * Linux's O_PATH, which Node's constants lack: opens a handle of a directory that need not be
 * readable.
 */
const oPath = 0o10000000;
const handleFlags = oPath | constants.O_NOFOLLOW;
const groupPasses = 0o2110;
/**
 * The number of directories processed concurrently, because a remote server answers several
 * requests in the time of one.
 */
const mostBeside = 16;
const filesBeside = 8;
/**
 * The depth up to which each level keeps a handle open: a tree may have more levels than a process
 * may have handles.
 */
const mostSteps = 32;

/**
 * A parent directory whose handle was closed, and the identity to check when the directory is
 * opened again.
 */
interface Step {
  readonly facts: Stats;
  /** The subdirectories that are still to be processed. */
  readonly left: Buffer[];
}

/**
 * Sets the group of everything below the directory, and of the directory last: its group shows that
 * the walk is complete. No symbolic link is followed, and each step starts from the handle of its
 * parent, so that concurrently replacing a directory by a link cannot redirect the walk. Other
 * devices are skipped, because they are other volumes. Rejects for paths that cannot be read; files
 * that cannot be changed are counted.
 */
export async function walkForGroup(
  directory: string,
  gift: GroupOwnership,
  onProgress: (visited: number) => void = () => {},
): Promise<GroupWalkResult> {
  return await new Walk(gift, onProgress).run(directory);
}

class Walk {
  readonly #gift: GroupOwnership;
  readonly #onProgress: (visited: number) => void;
  #device = 0;
  #beside = 0;
  #visited = 0;
  #unchanged = 0;
  #because: string | undefined;

  constructor(gift: GroupOwnership, onProgress: (visited: number) => void) {
    this.#gift = gift;
    this.#onProgress = onProgress;
  }

  async run(directory: string): Promise<GroupWalkResult> {
    this.#device = (await lstat(directory)).dev;
    await this.#give(directory, 0);
    return { visited: this.#visited, unchanged: this.#unchanged, because: this.#because };
  }

  async #give(path: PathLike, steps: number): Promise<void> {
    const opened = await this.#open(path);
    if (opened === undefined) return;
    const { handle, facts } = opened;
    await using _closed = handle;
    if (facts.isDirectory()) await this.#giveInside(handle, facts, steps + 1);
    await this.#changed(path, handle, facts);
  }

  /** Returns undefined for a directory that no longer exists or is on another device. */
  async #open(path: PathLike): Promise<{ handle: FileHandle; facts: Stats } | undefined> {
    const handle = await open(path, handleFlags).catch(unlessMissing);
    if (handle === undefined) return undefined;
    const facts = await handle.stat();
    if (facts.dev === this.#device) return { handle, facts };
    await handle.close();
    return undefined;
  }

  async #giveInside(handle: FileHandle, facts: Stats, steps: number): Promise<void> {
    const directories = await this.#giveFiles(handle, steps);
    if (steps >= mostSteps) {
      await this.#giveDeep(handle, { facts, left: directories });
      return;
    }
    const beside: Promise<void>[] = [];
    for (const name of directories) {
      if (this.#beside >= mostBeside) await this.#give(within(handle, name), steps);
      else beside.push(this.#giveBeside(within(handle, name), steps));
    }
    // The walks of the subdirectories use this handle, which must stay open until they end.
    await allSettledOrThrow(beside);
  }

  /** Sets the group of the files in the directory. Returns the names of the subdirectories. */
  async #giveFiles(handle: FileHandle, steps: number): Promise<Buffer[]> {
    // File names are bytes and need not be valid UTF-8.
    const options = { withFileTypes: true, encoding: 'buffer' } as const;
    const entries = (await readdir(`/proc/self/fd/${handle.fd}`, options).catch(unlessMissing)) ?? [];
    const files = entries.filter((entry) => !entry.isDirectory());
    for (let first = 0; first < files.length; first += filesBeside)
      await allSettledOrThrow(
        files.slice(first, first + filesBeside).map(({ name }) => this.#give(within(handle, name), steps)),
      );
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  }

  /**
   * Processes any number of levels with a single open handle, one directory at a time. On the way
   * back it opens the parent that the kernel reports and compares its identity, so that
   * concurrently moving a directory cannot redirect the walk.
   */
  async #giveDeep(top: FileHandle, first: Step): Promise<void> {
    const steps = [first];
    let at = top;
    try {
      for (let step = steps.at(-1); step !== undefined; step = steps.at(-1)) {
        const name = step.left.pop();
        const below = name && (await this.#open(within(at, name)));
        if (below?.facts.isDirectory() === true) {
          if (at !== top) await at.close();
          at = below.handle;
          steps.push({ facts: below.facts, left: await this.#giveFiles(at, mostSteps) });
        } else if (below !== undefined && name !== undefined) {
          await using _closed = below.handle;
          await this.#changed(within(at, name), below.handle, below.facts);
        } else if (name === undefined) {
          steps.pop();
          const above = steps.at(-1);
          if (above === undefined) return;
          await this.#changed('', at, step.facts);
          const left = at;
          at = above === first ? top : await stepUp(left, above.facts);
          await left.close();
        }
      }
    } finally {
      if (at !== top) await at.close();
    }
  }

  async #giveBeside(path: PathLike, steps: number): Promise<void> {
    this.#beside++;
    try {
      await this.#give(path, steps);
    } finally {
      this.#beside--;
    }
  }

  async #changed(path: PathLike, handle: FileHandle, facts: Stats): Promise<void> {
    await this.#change(path, handle, facts);
    this.#onProgress(++this.#visited);
  }

  async #change(path: PathLike, handle: FileHandle, facts: Stats): Promise<void> {
    const { group, bits } = this.#gift;
    const itself = `/proc/self/fd/${handle.fd}`;
    const mode = facts.mode & 0o7777;
    try {
      if (facts.gid !== group)
        await (facts.isSymbolicLink() ? lchown(path, facts.uid, group) : chown(itself, facts.uid, group));
      if (facts.isSymbolicLink() || bits === undefined) return;
      const desired = mode | (facts.isDirectory() ? bits | groupPasses : bits);
      // The change of the owner may have cleared mode bits.
      if (desired !== mode || (facts.gid !== group && (mode & 0o6000) !== 0)) await chmod(itself, desired);
    } catch (error) {
      unlessMissing(error, () => {
        this.#unchanged++;
        this.#because ??= error instanceof Error ? error.message : String(error);
      });
    }
  }
}

function within(handle: FileHandle, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${handle.fd}/`), name]);
}

async function stepUp(from: FileHandle, { dev, ino }: Stats): Promise<FileHandle> {
  const above = await open(`/proc/self/fd/${from.fd}/..`, handleFlags | constants.O_DIRECTORY);
  const facts = await above.stat();
  if (facts.dev === dev && facts.ino === ino) return above;
  await above.close();
  throw new Error('a directory was moved while the group of its files was being changed');
}

/** Waits for all concurrent work to end, even after a failure, and then throws the first error. */
async function allSettledOrThrow(work: readonly Promise<void>[]): Promise<void> {
  const ends = await Promise.allSettled(work);
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}

function unlessMissing(error: unknown, otherwise?: () => void): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return;
  if (otherwise === undefined) throw error;
  otherwise();
}
