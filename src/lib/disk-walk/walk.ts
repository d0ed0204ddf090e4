import {
  closeSync,
  constants,
  type Dir,
  fstatSync,
  lstatSync,
  opendirSync,
  openSync,
  readlinkSync,
  type Stats,
} from 'node:fs';
import type { FileCount, Tree, TreeUsage } from './messages.ts';

export interface WalkContext {
  /** The current mount points; the list may be a second old. */
  readonly mountPoints: () => readonly string[];
  /**
   * Called after every batch of counted entries with their number; resolves when the walk may
   * continue.
   */
  readonly rest: (calls: number) => Promise<'continue' | 'stop'>;
}

/** One of the directories on the path from the root of the walk to the current directory. */
interface Level {
  readonly ino: number;
  readonly path: string;
  /** Subdirectories that were not visited yet. */
  readonly names: string[];
  /** The unread rest of the entries of a very large directory. */
  entries: Dir | undefined;
}

/** The encoding that keeps names as raw bytes, because not all names are valid UTF-8. */
const bytes = 'latin1';
const blockBytes = 512;
const ownPart = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const visitsPerRest = 256;
/** Limits of the memory of one walk. */
const limits = { names: 200_000, namesOfOne: 4_096, largeDirectories: 64, links: 100_000 };

/**
 * Counts the disk usage of a directory and everything below it, or of a single file. Never follows
 * symbolic links, and never enters or accesses a mount, which may be unresponsive. A hard-linked
 * file counts once. Entries removed during the walk are skipped. Directories are opened through
 * handles of their parents, so depth is unlimited. Rejects when the path does not exist.
 */
export async function walkTree(tree: Tree, around: WalkContext): Promise<TreeUsage> {
  const walk = new TreeWalk(tree, around);
  return await walk.run();
}

class TreeWalk {
  readonly #context: WalkContext;
  readonly #root: string;
  readonly #isSplit: boolean;
  readonly #levels: Level[] = [];
  readonly #counts = new Map<string, { usedBytes: number; inodesUsed: number }>();
  #count = { usedBytes: 0, inodesUsed: 0 };
  #points: readonly string[] = [];
  #mounted: ReadonlyMap<string, ReadonlySet<string>> = new Map();
  readonly #links = new Set<number>();
  /** The file descriptor of the current directory, which is the last element of `#levels`. */
  #directoryIndex = -1;
  #device = 0;
  #held = 0;
  #visited = 0;
  #isComplete = true;

  constructor({ path, parts }: Tree, around: WalkContext) {
    this.#root = path;
    this.#isSplit = parts !== undefined;
    this.#context = around;
  }

  async run(): Promise<TreeUsage> {
    this.#countIn('');
    const root = lstatSync(this.#root);
    if (!root.isDirectory()) {
      this.#add(root);
      return this.#usage();
    }
    this.#directoryIndex = openSync(this.#root, ownPart);
    try {
      const facts = fstatSync(this.#directoryIndex);
      this.#device = facts.dev;
      this.#enter(facts, readlinkSync(handle(this.#directoryIndex), bytes));
      await this.#go();
    } finally {
      for (const { entries } of this.#levels) entries?.closeSync();
      closeSync(this.#directoryIndex);
    }
    return this.#usage();
  }

  async #go(): Promise<void> {
    for (;;) {
      const level = this.#levels.at(-1);
      if (level === undefined) return;
      const name = level.names.pop();
      if (name !== undefined) {
        this.#held--;
        if (this.#isSplit && this.#levels.length === 1) this.#countIn(name);
        this.#descend(level, name);
      } else if (level.entries !== undefined) {
        if ((await this.#read(level)) === 'stop') return;
      } else if (this.#ascend() === 'lost') return;
    }
  }

  #enter(facts: Stats, path: string): void {
    const level: Level = { ino: facts.ino, path, names: [], entries: undefined };
    this.#levels.push(level);
    this.#add(facts);
    this.#trying(() => {
      level.entries = opendirSync(handle(this.#directoryIndex), {
        encoding: bytes,
        bufferSize: visitsPerRest,
      });
    });
  }

  /**
   * Counts the entries of the directory and remembers its subdirectories; of a very large directory
   * only some at a time.
   */
  async #read(level: Level): Promise<'continue' | 'stop'> {
    if (this.#levels.length === 1) this.#countIn('');
    const mounted = this.#mountedIn(level.path);
    for (;;) {
      const entry = this.#trying(() => level.entries?.readSync() ?? undefined);
      if (entry === undefined) {
        this.#close(level);
        return 'continue';
      }
      if (mounted?.has(entry.name) !== true) {
        if (entry.isDirectory()) this.#remember(level, entry.name);
        else this.#visit(level, entry.name);
      }
      if (++this.#visited >= visitsPerRest && (await this.#rest()) === 'stop') return 'stop';
      if (level.names.length >= limits.namesOfOne) break;
    }
    const large = this.#levels.filter(({ entries }) => entries !== undefined);
    if (large.length > limits.largeDirectories || this.#held > limits.names) {
      this.#isComplete = false;
      this.#close(level);
    }
    return 'continue';
  }

  #remember(level: Level, name: string): void {
    level.names.push(name);
    this.#held++;
  }

  #close(level: Level): void {
    level.entries?.closeSync();
    level.entries = undefined;
  }

  #visit(level: Level, name: string): void {
    this.#trying(() => {
      const facts = lstatSync(this.#inside(name), { throwIfNoEntry: false });
      // Some file systems return no entry types in a listing, so the type is read here.
      if (facts?.isDirectory() === true) this.#remember(level, name);
      else if (facts?.dev === this.#device) this.#add(facts);
    });
  }

  #descend(level: Level, name: string): void {
    if (this.#mountedIn(level.path)?.has(name) === true) return;
    this.#visited++;
    const below = this.#trying(() => openSync(this.#inside(name), ownPart));
    if (below === undefined) return;
    const facts = this.#trying(() => fstatSync(below));
    if (facts?.dev !== this.#device) {
      closeSync(below);
      return;
    }
    closeSync(this.#directoryIndex);
    this.#directoryIndex = below;
    this.#enter(facts, `${level.path}/${name}`);
  }

  /**
   * Returns to the parent directory; `lost` if the directory was moved during the walk, because its
   * parent is then another directory.
   */
  #ascend(): 'there' | 'lost' {
    this.#levels.pop();
    const level = this.#levels.at(-1);
    if (level === undefined) return 'there';
    const above = this.#trying(() => openSync(`${handle(this.#directoryIndex)}/..`, ownPart));
    const isThere = above !== undefined && fstatSync(above).ino === level.ino;
    if (above !== undefined) {
      closeSync(this.#directoryIndex);
      this.#directoryIndex = above;
    }
    if (!isThere) this.#isComplete = false;
    return isThere ? 'there' : 'lost';
  }

  #add(facts: Stats): void {
    const { blocks, nlink, ino, mode } = facts;
    const isShared = nlink > 1 && (mode & constants.S_IFMT) !== constants.S_IFDIR;
    if (isShared && this.#links.has(ino)) return;
    const isRecorded = isShared && this.#links.size < limits.links;
    if (isRecorded) this.#links.add(ino);
    // When the limit of remembered hard links is reached, each name of a hard-linked file counts
    // for its share of the size; the shares add up to the whole size if all names of the file are
    // in the tree.
    const share = isShared && !isRecorded ? nlink : 1;
    this.#count.usedBytes += (blocks * blockBytes) / share;
    this.#count.inodesUsed += 1 / share;
  }

  /**
   * Counts all following entries for this part of the tree: a direct subdirectory, or the files next
   * to the subdirectories (empty name).
   */
  #countIn(part: string): void {
    const count = this.#counts.get(part) ?? { usedBytes: 0, inodesUsed: 0 };
    this.#counts.set(part, count);
    this.#count = count;
  }

  async #rest(): Promise<'continue' | 'stop'> {
    const decision = await this.#context.rest(this.#visited);
    this.#visited = 0;
    if (decision === 'stop') this.#isComplete = false;
    return decision;
  }

  /** The names of the entries in a directory that are mount points. */
  #mountedIn(path: string): ReadonlySet<string> | undefined {
    const points = this.#context.mountPoints();
    if (points !== this.#points) {
      this.#points = points;
      const [{ path: root } = { path: '' }] = this.#levels;
      const begin = `${Buffer.from(root, bytes).toString()}/`;
      const below = points
        .filter((point) => point.startsWith(begin))
        .map((point) => splitName(Buffer.from(point).toString(bytes)));
      const groups = Map.groupBy(below, ([directory]) => directory);
      this.#mounted = new Map([...groups].map(([at, names]) => [at, new Set(names.map(([, name]) => name))]));
    }
    return this.#mounted.size === 0 ? undefined : this.#mounted.get(path);
  }

  #inside(name: string): Buffer {
    return Buffer.from(`${handle(this.#directoryIndex)}/${name}`, bytes);
  }

  /** A removed entry need not be counted; any other error makes the count incomplete. */
  #trying<T>(act: () => T): T | undefined {
    try {
      return act();
    } catch (error) {
      if (!missingErrors.has((error as NodeJS.ErrnoException).code ?? '')) this.#isComplete = false;
      return undefined;
    }
  }

  #usage(): TreeUsage {
    const all = [...this.#counts].map(([name, count]) => [name, countOf(count)] as const);
    const sum = (of: (count: FileCount) => number) => all.reduce((total, [, count]) => total + of(count), 0);
    return {
      usedBytes: sum(({ usedBytes }) => usedBytes),
      inodesUsed: sum(({ inodesUsed }) => inodesUsed),
      isComplete: this.#isComplete,
      parts: this.#isSplit ? Object.fromEntries(all) : undefined,
    };
  }
}

const missingErrors: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP']);

function handle(index: number): string {
  return `/proc/self/fd/${index}`;
}

function splitName(path: string): readonly [directory: string, name: string] {
  const slash = path.lastIndexOf('/');
  return [path.slice(0, slash), path.slice(slash + 1)];
}

function countOf({ usedBytes, inodesUsed }: FileCount): FileCount {
  return { usedBytes: Math.round(usedBytes), inodesUsed: Math.round(inodesUsed) };
}
