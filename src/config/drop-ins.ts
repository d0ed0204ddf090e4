import { posix } from 'node:path';
import { describeError } from '../lib/index.ts';
import type { ConfigFiles } from './file-system.ts';
import { type Finding, findingIn } from './findings.ts';

export interface DropIns {
  /** Absolute, in the order they apply. */
  readonly files: readonly string[];
  readonly warnings: readonly Finding[];
  readonly problems: readonly Finding[];
}

/** A tree this deep or wide is no directory of drop-ins; perhaps it is the root of the host. */
const deepest = 16;
const mostEntries = 10_000;

/** Finds the `*.conf` files below a directory: names in order, a directory's files where its name stands. */
export async function findDropIns(
  directory: string,
  files: ConfigFiles,
  signal: AbortSignal,
): Promise<DropIns> {
  const search = new DropInSearch(files, signal);
  await search.walk(directory, 0);
  return search;
}

class DropInSearch implements DropIns {
  readonly files: string[] = [];
  readonly warnings: Finding[] = [];
  readonly problems: Finding[] = [];
  readonly #host: ConfigFiles;
  readonly #signal: AbortSignal;
  #seen = 0;

  constructor(host: ConfigFiles, signal: AbortSignal) {
    this.#host = host;
    this.#signal = signal;
  }

  async walk(directory: string, depth: number): Promise<void> {
    for (const entry of await this.#list(directory)) {
      const path = posix.join(directory, entry.name);
      if (this.#isTooLarge(path, depth)) return;
      if (entry.kind === 'directory') await this.walk(path, depth + 1);
      else this.#consider(path);
    }
  }

  async #list(directory: string) {
    try {
      const entries = await this.#host.readDirectory(directory, this.#signal);
      return [...entries].sort((a, b) => (a.name < b.name ? -1 : 1));
    } catch (error) {
      this.#signal.throwIfAborted();
      this.problems.push(findingIn(directory, `cannot be read: ${describeError(error)}`));
      return [];
    }
  }

  #consider(path: string): void {
    if (path.endsWith('.conf')) this.files.push(path);
    else if (/\.(ya?ml|json)$/i.test(path)) {
      this.warnings.push(findingIn(path, 'is not read as drop-ins must be called *.conf'));
    }
  }

  /** Said once; the search then ends on every level. */
  #isTooLarge(path: string, depth: number): boolean {
    if (++this.#seen <= mostEntries && depth <= deepest) return false;
    if (this.#seen <= mostEntries + 1) {
      this.problems.push(findingIn(path, 'cannot be searched as the directory is too deep or too large'));
    }
    this.#seen = mostEntries + 1;
    return true;
  }
}
