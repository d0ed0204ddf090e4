import { lstatSync, readdirSync, type Stats } from 'node:fs';
import type { FileCount, Tree, TreeUsage } from './messages.ts';
import type { MountPoints } from './mount-points.ts';

/** A directory with the files in it, and the count they are part of. */
interface Directory {
  readonly path: string;
  readonly part: string;
  /** When something in it, or of itself, was changed last. */
  readonly changedMs: number;
  readonly files: string[];
}

const most = 64;
const mostTrees = 512;
const blockBytes = 512;
const noText = '\ufffd';
/** File systems tell times in steps: of what has just been changed nobody knows whether it was changed again. */
const settledMs = 1_000;

class NotSimple extends Error {}

/**
 * A directory with a few plain files in it and in directories right below, as those of logs are, by its parts; or a file
 * alone: with fewer calls than a walk. What is in a directory is listed again only when it has changed.
 */
export class FewFiles {
  readonly #nowMs: () => number;
  readonly #listed = new Map<string, readonly Directory[]>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Undefined for whatever is not that simple, which a walk has to count. */
  count({ path, parts }: Tree, mounts: MountPoints): TreeUsage | 'gone' | undefined {
    const root = lstatSync(path, { throwIfNoEntry: false });
    if (root === undefined) {
      this.#listed.delete(path);
      return 'gone';
    }
    if (!root.isDirectory()) return usageOf(new Map([['', countOf(root)]]), parts);
    if (parts === undefined || mounts.isAnyBelow(path)) return undefined;
    try {
      return usageOf(this.#counts(path, root), parts);
    } catch {
      return undefined;
    }
  }

  #counts(path: string, root: Stats): ReadonlyMap<string, FileCount> {
    const known = this.#listed.get(path);
    const counts = known === undefined ? undefined : countAll(known, root);
    if (counts !== undefined) return counts;
    this.#listed.delete(path);
    const nowMs = this.#nowMs();
    const list = listAll(path, root);
    if (list.every(({ changedMs }) => nowMs - changedMs > settledMs)) {
      if (this.#listed.size >= mostTrees) this.#listed.clear();
      this.#listed.set(path, list);
    }
    const fresh = countAll(list, root);
    if (fresh === undefined) throw new NotSimple();
    return fresh;
  }
}

/** Undefined when one of them is not as it was listed. */
function countAll(directories: readonly Directory[], root: Stats): ReadonlyMap<string, Counted> | undefined {
  const counts = new Map<string, Counted>();
  for (const [index, { path, part, changedMs, files }] of directories.entries()) {
    const facts = index === 0 ? root : look(path, root);
    if (facts?.ctimeMs !== changedMs) return undefined;
    const count = counts.get(part) ?? countOf(undefined);
    add(count, facts);
    for (const file of files) {
      const found = look(file, root);
      if (found === undefined) continue;
      if (found.isDirectory() || found.nlink > 1) throw new NotSimple();
      add(count, found);
    }
    counts.set(part, count);
  }
  return counts;
}

function listAll(path: string, root: Stats): readonly Directory[] {
  const own: Directory = { path, part: '', changedMs: root.ctimeMs, files: [] };
  const all = [own];
  let left = most;
  const namesIn = (directory: string) => {
    const names = readdirSync(directory);
    left -= names.length;
    if (left < 0 || names.some((name) => name.includes(noText))) throw new NotSimple();
    return names;
  };
  for (const name of namesIn(path)) {
    const at = `${path}/${name}`;
    const facts = look(at, root);
    if (facts?.isDirectory() !== true) own.files.push(at);
    else {
      const files = namesIn(at).map((inner) => `${at}/${inner}`);
      all.push({ path: at, part: name, changedMs: facts.ctimeMs, files });
    }
  }
  return all;
}

function look(path: string, root: Stats): Stats | undefined {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  if (facts !== undefined && facts.dev !== root.dev) throw new NotSimple();
  return facts;
}

interface Counted {
  usedBytes: number;
  inodesUsed: number;
}

function countOf(facts: Stats | undefined): Counted {
  return facts === undefined
    ? { usedBytes: 0, inodesUsed: 0 }
    : { usedBytes: facts.blocks * blockBytes, inodesUsed: 1 };
}

function add(count: Counted, { blocks }: Stats): void {
  count.usedBytes += blocks * blockBytes;
  count.inodesUsed++;
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
    isWhole: true,
    parts: parts === undefined ? undefined : Object.fromEntries(counts),
  };
}
