import { lstatSync, readdirSync, type Stats } from 'node:fs';
import type { MountPoints } from '../mountinfo.ts';
import type { FileCount, Tree, TreeUsage } from './messages.ts';

/**
 * A cached directory with its files. `part` is the direct subdirectory of the tree for which the
 * files are counted; empty for the tree itself.
 */
interface Directory {
  readonly path: string;
  readonly part: string;
  /** The inode of the directory; it differs if a file system is mounted over the directory. */
  readonly ino: number;
  /** When the directory or its inode last changed. */
  readonly changedMs: number;
  readonly files: string[];
}

const maxEntries = 64;
const maxTrees = 512;
const blockBytes = 512;
const noText = '\ufffd';
/**
 * The minimum age of the last change before a directory is cached: file systems store times in
 * steps, so a directory may change again without a new time.
 */
const minAgeMs = 1_000;

class NotSimple extends Error {}

/**
 * Measures a single file, or a directory with a few plain files in it and in its direct
 * subdirectories, such as a log directory. It needs fewer system calls than a walk, because a
 * directory is listed again only when it has changed.
 */
export class SmallTreeCounter {
  readonly #nowMs: () => number;
  readonly #listed = new Map<string, readonly Directory[]>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /**
   * Returns the usage of the tree; undefined for a more complex tree, which a walk has to count.
   */
  count({ path, parts }: Tree, mounts: () => MountPoints): TreeUsage | 'gone' | undefined {
    const root = lstatSync(path, { throwIfNoEntry: false });
    if (root === undefined) {
      this.#listed.delete(path);
      return 'gone';
    }
    if (!root.isDirectory()) return usageOf(new Map([['', countOf(root)]]), parts);
    if (parts === undefined) return undefined;
    try {
      return usageOf(this.#recount(path, root) ?? this.#listAndCount(path, root, mounts()), parts);
    } catch {
      return undefined;
    }
  }

  #recount(path: string, root: Stats): ReadonlyMap<string, FileCount> | undefined {
    const listed = this.#listed.get(path);
    return listed === undefined ? undefined : countAll(listed, root);
  }

  #listAndCount(path: string, root: Stats, mounts: MountPoints): ReadonlyMap<string, FileCount> {
    this.#listed.delete(path);
    if (mounts.isAnyBelow(path)) throw new NotSimple();
    const nowMs = this.#nowMs();
    const list = listAll(path, root);
    if (list.every(({ changedMs }) => nowMs - changedMs > minAgeMs)) {
      if (this.#listed.size >= maxTrees) this.#listed.clear();
      this.#listed.set(path, list);
    }
    const counts = countAll(list, root);
    if (counts === undefined) throw new NotSimple();
    return counts;
  }
}

/** The counts of all files; undefined if an entry has changed since the directory was listed. */
function countAll(directories: readonly Directory[], root: Stats): ReadonlyMap<string, Counted> | undefined {
  const counts = new Map<string, Counted>();
  for (const directory of directories) {
    const facts = directory.part === '' ? root : statEntry(directory.path, root);
    if (facts?.ctimeMs !== directory.changedMs || facts.ino !== directory.ino) return undefined;
    const count = countOf(facts);
    for (const file of directory.files) addFile(count, statEntry(file, root));
    counts.set(directory.part, count);
  }
  return counts;
}

function addFile(count: Counted, facts: Stats | undefined): void {
  if (facts === undefined) return;
  if (facts.isDirectory() || facts.nlink > 1) throw new NotSimple();
  count.usedBytes += facts.blocks * blockBytes;
  count.inodesUsed++;
}

function listAll(path: string, root: Stats): readonly Directory[] {
  const own: Directory = { path, part: '', ino: root.ino, changedMs: root.ctimeMs, files: [] };
  const all = [own];
  let left = maxEntries;
  const namesIn = (directory: string) => {
    const names = readdirSync(directory);
    left -= names.length;
    if (left < 0 || names.some((name) => name.includes(noText))) throw new NotSimple();
    return names;
  };
  for (const name of namesIn(path)) {
    const at = `${path}/${name}`;
    const facts = statEntry(at, root);
    if (facts?.isDirectory() !== true) own.files.push(at);
    else {
      const files = namesIn(at).map((inner) => `${at}/${inner}`);
      all.push({ path: at, part: name, ino: facts.ino, changedMs: facts.ctimeMs, files });
    }
  }
  return all;
}

function statEntry(path: string, root: Stats): Stats | undefined {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  if (facts !== undefined && facts.dev !== root.dev) throw new NotSimple();
  return facts;
}

interface Counted {
  usedBytes: number;
  inodesUsed: number;
}

function countOf({ blocks }: Stats): Counted {
  return { usedBytes: blocks * blockBytes, inodesUsed: 1 };
}

function usageOf(counts: ReadonlyMap<string, FileCount>, parts: Tree['parts']): TreeUsage {
  let [usedBytes, inodesUsed] = [0, 0];
  for (const count of counts.values()) {
    usedBytes += count.usedBytes;
    inodesUsed += count.inodesUsed;
  }
  return {
    usedBytes,
    inodesUsed,
    isComplete: true,
    parts: parts === undefined ? undefined : Object.fromEntries(counts),
  };
}
