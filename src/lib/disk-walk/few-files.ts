import { lstatSync, readdirSync, type Stats } from 'node:fs';
import type { FileCount, Tree, TreeUsage } from './messages.ts';

const most = 64;
const blockBytes = 512;
const noText = '\ufffd';

/**
 * A directory with a few plain files in it and in directories right below, as those of logs are, by its parts: with half the
 * calls of a walk. Undefined for whatever is not that simple, which a walk has to count.
 */
export function countFewFiles({ path, parts }: Tree, mountPoints: readonly string[]): TreeUsage | undefined {
  if (parts === undefined || mountPoints.some((point) => point.startsWith(`${path}/`))) return undefined;
  try {
    return new FewFiles(path).usage();
  } catch {
    return undefined;
  }
}

class NotSimple extends Error {}

class FewFiles {
  readonly #path: string;
  readonly #root: Stats;
  readonly #counts = new Map<string, { usedBytes: number; inodesUsed: number }>();
  #left = most;

  constructor(path: string) {
    this.#path = path;
    this.#root = lstatSync(path);
  }

  usage(): TreeUsage {
    this.#add('', this.#root);
    for (const name of this.#names(this.#path)) {
      const at = `${this.#path}/${name}`;
      const facts = this.#look(at);
      if (facts?.isDirectory() === true) {
        this.#add(name, facts);
        for (const inner of this.#names(at)) this.#addFile(name, this.#look(`${at}/${inner}`));
      } else this.#addFile('', facts);
    }
    const all = [...this.#counts.values()];
    const sum = (of: (count: FileCount) => number) => all.reduce((total, each) => total + of(each), 0);
    return {
      usedBytes: sum(({ usedBytes }) => usedBytes),
      inodesUsed: sum(({ inodesUsed }) => inodesUsed),
      isWhole: true,
      parts: Object.fromEntries(this.#counts),
    };
  }

  #names(directory: string): readonly string[] {
    const names = readdirSync(directory);
    this.#left -= names.length;
    if (this.#left < 0 || names.some((name) => name.includes(noText))) throw new NotSimple();
    return names;
  }

  #look(path: string): Stats | undefined {
    const facts = lstatSync(path, { throwIfNoEntry: false });
    if (facts !== undefined && facts.dev !== this.#root.dev) throw new NotSimple();
    return facts;
  }

  #addFile(part: string, facts: Stats | undefined): void {
    if (facts === undefined) return;
    if (facts.isDirectory() || facts.nlink > 1) throw new NotSimple();
    this.#add(part, facts);
  }

  #add(part: string, { blocks }: Stats): void {
    const count = this.#counts.get(part) ?? { usedBytes: 0, inodesUsed: 0 };
    count.usedBytes += blocks * blockBytes;
    count.inodesUsed++;
    this.#counts.set(part, count);
  }
}
