import { constants, type PathLike, type Stats } from 'node:fs';
import { chmod, chown, type FileHandle, lchown, lstat, open, readdir } from 'node:fs/promises';

/** What a tree is given: to whom, and what they may do with it besides what they may already. */
export interface GroupGift {
  readonly group: number;
  /** Of files; directories can be gone through as well, and what is made in them later is the group's too. No more than the owner's group changes when left out. */
  readonly bits?: number | undefined;
}

export interface GroupWalk {
  readonly seen: number;
  /** What could not be changed, and why the first of it could not. */
  readonly unchanged: number;
  readonly because?: string | undefined;
}

/** Linux only, and in no list of Node's: a handle to a place that can be gone through but not read. */
const oPath = 0o10000000;
const placeFlags = oPath | constants.O_NOFOLLOW;
const groupPasses = 0o2110;
/** Directories worked on beside each other: a server far away answers several as fast as one. */
const mostBeside = 16;
const filesBeside = 8;

/**
 * Gives everything below the directory, and at last the directory, to a group: whoever finds the directory given finds all
 * of it given. No link is followed, and each step is taken from the handle of the one before, so that nothing that becomes
 * a link meanwhile leads elsewhere. What is on another device was mounted there by somebody who did not ask for this.
 * Rejects for what cannot be looked at; what cannot be changed is counted.
 */
export async function walkForGroup(
  directory: string,
  gift: GroupGift,
  told: (seen: number) => void = () => {},
): Promise<GroupWalk> {
  return await new Walk(gift, told).run(directory);
}

class Walk {
  readonly #gift: GroupGift;
  readonly #told: (seen: number) => void;
  #device = 0;
  #beside = 0;
  #seen = 0;
  #unchanged = 0;
  #because: string | undefined;

  constructor(gift: GroupGift, told: (seen: number) => void) {
    this.#gift = gift;
    this.#told = told;
  }

  async run(directory: string): Promise<GroupWalk> {
    this.#device = (await lstat(directory)).dev;
    await this.#give(directory);
    return { seen: this.#seen, unchanged: this.#unchanged, because: this.#because };
  }

  async #give(path: PathLike): Promise<void> {
    // What others remove meanwhile is nobody's any more.
    const place = await open(path, placeFlags).catch(unlessMissing);
    if (place === undefined) return;
    await using _closed = place;
    const facts = await place.stat();
    if (facts.dev !== this.#device) return;
    if (facts.isDirectory()) await this.#giveInside(place);
    await this.#change(path, place, facts);
    this.#told(++this.#seen);
  }

  async #giveInside(place: FileHandle): Promise<void> {
    const inside = `/proc/self/fd/${place.fd}`;
    // Names are bytes, and need be no text.
    const options = { withFileTypes: true, encoding: 'buffer' } as const;
    const entries = (await readdir(inside, options).catch(unlessMissing)) ?? [];
    const at = (name: Buffer) => Buffer.concat([Buffer.from(`${inside}/`), name]);
    const directories = entries.filter((entry) => entry.isDirectory());
    const others = entries.filter((entry) => !entry.isDirectory());
    for (let first = 0; first < others.length; first += filesBeside)
      await settled(others.slice(first, first + filesBeside).map(({ name }) => this.#give(at(name))));
    const beside: Promise<void>[] = [];
    for (const { name } of directories) {
      if (this.#beside >= mostBeside) await this.#give(at(name));
      else beside.push(this.#giveBeside(at(name)));
    }
    // Their way is through the handle, which must not be closed before.
    await settled(beside);
  }

  async #giveBeside(path: PathLike): Promise<void> {
    this.#beside++;
    try {
      await this.#give(path);
    } finally {
      this.#beside--;
    }
  }

  async #change(path: PathLike, place: FileHandle, facts: Stats): Promise<void> {
    const { group, bits } = this.#gift;
    const itself = `/proc/self/fd/${place.fd}`;
    const mode = facts.mode & 0o7777;
    try {
      if (facts.gid !== group)
        await (facts.isSymbolicLink() ? lchown(path, facts.uid, group) : chown(itself, facts.uid, group));
      if (facts.isSymbolicLink() || bits === undefined) return;
      const wanted = mode | (facts.isDirectory() ? bits | groupPasses : bits);
      // Another owner may have taken bits away.
      if (wanted !== mode || (facts.gid !== group && (mode & 0o6000) !== 0)) await chmod(itself, wanted);
    } catch (error) {
      unlessMissing(error, () => {
        this.#unchanged++;
        this.#because ??= error instanceof Error ? error.message : String(error);
      });
    }
  }
}

/** None is left under way when one has failed. */
async function settled(work: readonly Promise<void>[]): Promise<void> {
  const ends = await Promise.allSettled(work);
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}

function unlessMissing(error: unknown, otherwise?: () => void): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return;
  if (otherwise === undefined) throw error;
  otherwise();
}
