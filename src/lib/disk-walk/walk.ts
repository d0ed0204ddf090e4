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
  /** Where something is mounted now. May be a second old. */
  readonly mountPoints: () => readonly string[];
  /** Told after every few looks how many there were; resolves when there may be more. */
  readonly rest: (looks: number) => Promise<'go-on' | 'stop'>;
}

/** A directory on the way to where the walk is. */
interface Level {
  readonly ino: number;
  readonly path: string;
  /** Directories in it that are still to be gone into. */
  readonly names: string[];
  /** The rest of a very large one. */
  entries: Dir | undefined;
}

/** Names as they come, byte for byte: not all of them are text. */
const bytes = 'latin1';
const blockBytes = 512;
const ownPart = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const visitsPerRest = 256;
/** What is remembered at most, so that no tree takes more memory than others. */
const limits = { names: 200_000, namesOfOne: 4_096, largeDirectories: 64, links: 100_000 };

/**
 * Counts what a directory and all below it take. Never follows a link, never goes into what is mounted there, and does
 * not touch it: it may not answer. A file with several names counts once. What others remove meanwhile is left out. The
 * way is found by handles, so that no depth is too deep. A file counts as itself.
 * Rejects when there is nothing.
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
  /** A handle to the directory of the last level. */
  #place = -1;
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
    this.#place = openSync(this.#root, ownPart);
    try {
      const facts = fstatSync(this.#place);
      this.#device = facts.dev;
      this.#enter(facts, readlinkSync(handle(this.#place), bytes));
      await this.#go();
    } finally {
      for (const { entries } of this.#levels) entries?.closeSync();
      closeSync(this.#place);
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
      level.entries = opendirSync(handle(this.#place), { encoding: bytes, bufferSize: visitsPerRest });
    });
  }

  /** Looks at what is in the directory, and notes the directories in it; of a very large one only some. */
  async #read(level: Level): Promise<'go-on' | 'stop'> {
    if (this.#levels.length === 1) this.#countIn('');
    const mounted = this.#mountedIn(level.path);
    for (;;) {
      const entry = this.#trying(() => level.entries?.readSync() ?? undefined);
      if (entry === undefined) {
        this.#close(level);
        return 'go-on';
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
    return 'go-on';
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
      // Not every file system says what is a directory when it is listed.
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
    closeSync(this.#place);
    this.#place = below;
    this.#enter(facts, `${level.path}/${name}`);
  }

  /** Somebody may have moved the directory meanwhile: then what is above it is somewhere else. */
  #ascend(): 'there' | 'lost' {
    this.#levels.pop();
    const level = this.#levels.at(-1);
    if (level === undefined) return 'there';
    const above = this.#trying(() => openSync(`${handle(this.#place)}/..`, ownPart));
    const isThere = above !== undefined && fstatSync(above).ino === level.ino;
    if (above !== undefined) {
      closeSync(this.#place);
      this.#place = above;
    }
    if (!isThere) this.#isComplete = false;
    return isThere ? 'there' : 'lost';
  }

  #add(facts: Stats): void {
    const { blocks, nlink, ino, mode } = facts;
    const isShared = nlink > 1 && (mode & constants.S_IFMT) !== constants.S_IFDIR;
    if (isShared && this.#links.has(ino)) return;
    const isNoted = isShared && this.#links.size < limits.links;
    if (isNoted) this.#links.add(ino);
    // Beyond what can be noted each name counts for its share: with all of them in the tree it comes to the same.
    const share = isShared && !isNoted ? nlink : 1;
    this.#count.usedBytes += (blocks * blockBytes) / share;
    this.#count.inodesUsed += 1 / share;
  }

  /** From here on things are counted in this part. */
  #countIn(part: string): void {
    const count = this.#counts.get(part) ?? { usedBytes: 0, inodesUsed: 0 };
    this.#counts.set(part, count);
    this.#count = count;
  }

  async #rest(): Promise<'go-on' | 'stop'> {
    const answer = await this.#context.rest(this.#visited);
    this.#visited = 0;
    if (answer === 'stop') this.#isComplete = false;
    return answer;
  }

  /** The names in a directory where something is mounted. */
  #mountedIn(path: string): ReadonlySet<string> | undefined {
    const points = this.#context.mountPoints();
    if (points !== this.#points) {
      this.#points = points;
      const [{ path: root } = { path: '' }] = this.#levels;
      const begin = `${Buffer.from(root, bytes).toString()}/`;
      const below = points
        .filter((point) => point.startsWith(begin))
        .map((point) => splitName(Buffer.from(point).toString(bytes)));
      const places = Map.groupBy(below, ([directory]) => directory);
      this.#mounted = new Map([...places].map(([at, names]) => [at, new Set(names.map(([, name]) => name))]));
    }
    return this.#mounted.size === 0 ? undefined : this.#mounted.get(path);
  }

  #inside(name: string): Buffer {
    return Buffer.from(`${handle(this.#place)}/${name}`, bytes);
  }

  /** What is gone is no longer there to be counted; anything else is missing in the count. */
  #trying<T>(act: () => T): T | undefined {
    try {
      return act();
    } catch (error) {
      if (!goneErrors.has((error as NodeJS.ErrnoException).code ?? '')) this.#isComplete = false;
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

const goneErrors: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP']);

function handle(place: number): string {
  return `/proc/self/fd/${place}`;
}

function splitName(path: string): readonly [directory: string, name: string] {
  const slash = path.lastIndexOf('/');
  return [path.slice(0, slash), path.slice(slash + 1)];
}

function countOf({ usedBytes, inodesUsed }: FileCount): FileCount {
  return { usedBytes: Math.round(usedBytes), inodesUsed: Math.round(inodesUsed) };
}
