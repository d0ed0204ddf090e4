import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { abortable, type Random, randomInt, seededRandom } from '../../src/lib/index.ts';
import { assertLogIsWhole, ownDirectory, StoreRig } from '../fakes/store-rig.ts';

export interface StoreRoundsOptions {
  readonly kills: number;
  readonly seed: number;
  readonly tell: (line: string) => void;
  readonly interrupted: Promise<never>;
}

export interface StoreReport {
  readonly kills: number;
  readonly killsAtStart: number;
  readonly writes: number;
  readonly perSecond: number;
  readonly objects: number;
  readonly fileBytes: number;
}

/**
 * The last acknowledged value of one object; `number` is undefined if its deletion was
 * acknowledged.
 */
interface Known {
  readonly version: number;
  readonly number: number | undefined;
}

const writer = join(import.meta.dirname, 'store-writer.ts');
/**
 * The maximum time before a kill, counted from when the writer is ready, or for some kills from its
 * start.
 */
const longestLifeMs = 700;
const startLimitMs = 60_000;

/**
 * Kills the writer of a store repeatedly, and reads the file independently: all acknowledged
 * changes must exist, no version may be used twice, and the log may have gaps only where a writer
 * started.
 */
export class StoreRounds {
  readonly #options: StoreRoundsOptions;
  readonly #random: Random;
  readonly #path: string;
  readonly #known = new Map<string, Known>();
  readonly #given = new Set<number>();
  /** The versions at which writers started. */
  readonly #starts = new Set<number>([1]);
  #newest = 1;
  #writes = 0;
  #busyMs = 0;
  #killsAtStart = 0;

  constructor(path: string, options: StoreRoundsOptions) {
    this.#path = path;
    this.#options = options;
    this.#random = seededRandom(options.seed);
  }

  static async run(options: StoreRoundsOptions): Promise<StoreReport> {
    await using dir = await ownDirectory();
    const rounds = new StoreRounds(join(dir.path, 'api', 'objects.db'), options);
    for (let kill = 1; kill <= options.kills; kill++) await rounds.#round(kill);
    return await rounds.#report();
  }

  async #round(kill: number): Promise<void> {
    const before = this.#writes;
    await this.#live(this.#options.seed * 1_000 + kill);
    const rows = this.#look();
    this.#options.tell(`kill ${kill}: ${this.#writes - before} writes were safe, ${rows} changes in the log`);
  }

  async #live(seed: number): Promise<void> {
    const child = spawn(process.execPath, [writer, this.#path, String(seed)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exit = once(child, 'exit');
    const lines = createInterface({ input: child.stdout });
    const [isOpen, closed] = [Promise.withResolvers<void>(), once(lines, 'close')];
    lines.on('line', (line) => {
      if (line.startsWith('open')) isOpen.resolve();
      this.#take(line);
    });
    try {
      await Promise.race([this.#untilKill(isOpen.promise), exit, this.#options.interrupted]);
      assert.equal(child.exitCode, null, 'the writer ended by itself');
    } finally {
      child.kill('SIGKILL');
      await Promise.all([exit, closed]);
    }
  }

  async #untilKill(isOpen: Promise<void>): Promise<void> {
    const lifeMs = randomInt(this.#random, longestLifeMs);
    if (this.#random.next() < 0.2) {
      this.#killsAtStart++;
      await passed(lifeMs);
      return;
    }
    await abortable(isOpen, AbortSignal.timeout(startLimitMs));
    await passed(lifeMs);
    this.#busyMs += lifeMs;
  }

  #take(line: string): void {
    const [what, version, name, number] = line.split(' ');
    if (what === 'open') this.#begin(Number(version));
    else this.#learn(Number(version), name ?? '', number === undefined ? undefined : Number(number));
  }

  #begin(version: number): void {
    assert.ok(version >= this.#newest, `version ${version} is found where ${this.#newest} was given`);
    this.#starts.add(version);
  }

  #learn(version: number, name: string, number: number | undefined): void {
    assert.ok(!this.#given.has(version), `version ${version} was given twice`);
    this.#given.add(version);
    this.#newest = Math.max(this.#newest, version);
    this.#writes++;
    if (version > (this.#known.get(name)?.version ?? 0)) this.#known.set(name, { version, number });
  }

  /** Returns how many changes the log contains. */
  #look(): number {
    // The writer was killed before it could write, so there is no log to read.
    if (this.#newest === 1) return 0;
    const db = new DatabaseSync(this.#path, { readOnly: true });
    try {
      this.#lookForObjects(db);
      return this.#lookForGaps(db);
    } finally {
      db.close();
    }
  }

  #lookForObjects(db: DatabaseSync): void {
    const rows = db.prepare('SELECT key, rev, value FROM obj').all();
    const found = new Map(rows.map((row) => [String(row['key']).split('/').at(-1) ?? '', row]));
    for (const [name, { version, number }] of this.#known) {
      const row = found.get(name);
      if (row === undefined) this.#lookForEnd(db, name, { version, number });
      else {
        assert.ok(
          Number(row['rev']) >= version,
          `${name} has version ${row['rev']}, but ${version} was safe`,
        );
        if (row['rev'] !== version) continue;
        assert.equal(JSON.parse(String(row['value'])).value, number, `${name} is as it was told`);
      }
    }
  }

  /** If the object is missing, its deletion must have been acknowledged, or pending at the kill. */
  #lookForEnd(db: DatabaseSync, name: string, { version, number }: Known): void {
    if (number === undefined) return;
    const end = db.prepare(`SELECT rev FROM log WHERE key LIKE ? AND op = 'DELETED' AND rev > ?`);
    assert.ok(end.get(`%/${name}`, version), `${name} is lost, and version ${version} of it was safe`);
  }

  #lookForGaps(db: DatabaseSync): number {
    const versions = db
      .prepare('SELECT rev FROM log ORDER BY rev')
      .all()
      .map((row) => Number(row['rev']));
    versions.reduce(
      (last, next) => {
        // The first version of a writer must follow the version that it found.
        assert.ok(
          next === last + 1 || this.#starts.has(next - 1),
          `between ${last} and ${next} there is a gap`,
        );
        return next;
      },
      (versions[0] ?? 1) - 1,
    );
    return versions.length;
  }

  async #report(): Promise<StoreReport> {
    await using harness = await StoreRig.open(this.#path);
    assertLogIsWhole(harness.store);
    const { objects, fileBytes } = harness.store.stats();
    const perSecond = this.#busyMs === 0 ? 0 : (this.#writes * 1_000) / this.#busyMs;
    return {
      kills: this.#options.kills,
      killsAtStart: this.#killsAtStart,
      writes: this.#writes,
      perSecond,
      objects,
      fileBytes,
    };
  }
}

function passed(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
