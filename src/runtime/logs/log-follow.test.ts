import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { MemoryLogFiles } from '../../../test/fakes/memory-log-files.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { cancelledError } from '../../lib/index.ts';
import { LogFollowers } from './container-logs.ts';
import { LogReader, type LogReadRequest } from './log-reader.ts';
import { LogFileSequence } from './log-trail.ts';

const path = '/logs/ns_pod_uid/main/0.log';
const stemOf = (rotation: number) => `${path}.20260101-${String(rotation).padStart(6, '0')}`;

/** A container that writes numbered lines, and a reader that follows its log. */
class Rig {
  readonly clock = new VirtualClock();
  readonly files = new MemoryLogFiles();
  readonly followers = new LogFollowers();
  readonly #controller = new AbortController();
  #write = this.files.writer(path);
  #lines = 0;
  #rotations = 0;
  /**
   * The number of the rotated file that the container still writes to until its log is reopened.
   */
  #written: number | undefined;
  #running = true;
  #taking: Promise<void> = Promise.resolve();
  #release: () => void = () => {};
  out = '';
  end: 'open' | 'ended' | unknown = 'open';

  async follow(reading: Partial<LogReadRequest> = {}): Promise<void> {
    const trail = await LogFileSequence.open(this, path);
    const follow = { isRunning: async () => this.#running };
    const reader = new LogReader(this, { path, view: {}, follow, ...reading }, trail);
    void this.#consume(reader, trail).then(
      () => {
        this.end = 'ended';
      },
      (error: unknown) => {
        this.end = error;
      },
    );
    await this.clock.advance(0);
  }

  async #consume(reader: LogReader, trail: LogFileSequence): Promise<void> {
    await using _trail = trail;
    using _follower = this.followers.add(path, trail);
    for await (const chunk of reader.chunks(this.#controller.signal)) {
      this.out += Buffer.from(chunk).toString();
      await this.#taking;
    }
  }

  lines(count = 1): void {
    for (let left = count; left > 0; left--) this.#write(`2026-01-01T00:00:00Z stdout F ${this.#lines++}\n`);
  }

  /** Renames the log; the container still writes to the renamed file. */
  rename(): void {
    const isWritten = this.#written === undefined && this.files.contentOf(path) !== undefined;
    this.files.rename(path, stemOf(++this.#rotations));
    if (isWritten) this.#written = this.#rotations;
  }

  /** Creates a new log file while the container still writes to the old one. */
  reopen(): () => void {
    const next = this.files.writer(path);
    return () => {
      this.#write = next;
      this.#written = undefined;
    };
  }

  rotate(): void {
    this.rename();
    this.reopen()();
  }

  /**
   * Compresses a rotated file unless the container still writes to it, because later lines would be
   * lost.
   */
  compress(rotation: number): void {
    if (rotation === this.#written) return;
    const content = this.files.contentOf(stemOf(rotation));
    if (content === undefined) return;
    this.files.append(`${stemOf(rotation)}.gz`, gzipSync(content));
    this.files.remove(stemOf(rotation));
  }

  stall(): void {
    this.takeAgain();
    this.#taking = new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  takeAgain(): void {
    this.#release();
    this.#taking = Promise.resolve();
  }

  stop(): void {
    this.#running = false;
  }

  abort(): void {
    this.#controller.abort(cancelledError('enough'));
  }

  /** Advances virtual time until the condition holds; decompression needs real time. */
  async passUntil(condition: () => boolean): Promise<void> {
    for (let turn = 0; turn < 1_000 && !condition(); turn++) {
      await this.clock.advance(1_000);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  get wanted(): string {
    return Array.from({ length: this.#lines }, (_, index) => `${index}\n`).join('');
  }

  get left(): readonly number[] {
    return [this.files.handles, this.files.watchers, this.clock.pendingTimers];
  }
}

test('a followed log shows new lines immediately and ends when the container has exited', async () => {
  const harness = new Rig();
  harness.lines(2);
  await harness.follow();
  assert.equal(harness.out, '0\n1\n');
  harness.lines();
  await harness.clock.advance(0);
  assert.equal(harness.out, harness.wanted);
  harness.stop();
  harness.lines();
  await harness.clock.advance(1_050);
  harness.lines();
  await harness.clock.advance(1_000);
  assert.deepEqual([harness.end, harness.out, harness.left], ['ended', harness.wanted, [0, 0, 0]]);
});

test('shows a partial line of a followed log immediately, and its rest when it is written', async () => {
  const harness = new Rig();
  await harness.follow();
  harness.files.append(path, '2026-01-01T00:00:00Z std');
  await harness.clock.advance(1_000);
  harness.files.append(path, 'out F ha');
  await harness.clock.advance(1_000);
  assert.equal(harness.out, 'ha');
  harness.files.append(path, 'lf\n');
  await harness.clock.advance(0);
  assert.equal(harness.out, 'half\n');
});

test('reads a rotated file of a followed log completely before the next one', async () => {
  const harness = new Rig();
  await harness.follow();
  harness.lines();
  harness.rename();
  harness.lines();
  await harness.clock.advance(500);
  const takeNew = harness.reopen();
  await harness.clock.advance(50);
  harness.lines();
  await harness.clock.advance(60);
  harness.lines();
  takeNew();
  harness.lines();
  await harness.clock.advance(300);
  assert.equal(harness.out, harness.wanted);
});

test('a slow reader of a followed log misses no lines during many rotations', async () => {
  const harness = new Rig();
  await harness.follow();
  harness.stall();
  for (let rotation = 1; rotation <= 6; rotation++) {
    harness.lines(3);
    await harness.clock.advance(1_200);
    harness.rotate();
    harness.compress(rotation - 1);
    harness.files.remove(`${stemOf(rotation - 3)}.gz`);
  }
  harness.lines();
  harness.takeAgain();
  await harness.passUntil(() => harness.out === harness.wanted);
  assert.equal(harness.out, harness.wanted);
});

test('reads all files when a log is rotated several times between two refreshes', async () => {
  const harness = new Rig();
  harness.lines();
  await harness.follow();
  harness.lines();
  harness.rotate();
  harness.lines();
  harness.rotate();
  harness.lines();
  harness.rotate();
  harness.compress(1);
  harness.lines();
  await harness.passUntil(() => harness.out === harness.wanted);
  assert.equal(harness.out, harness.wanted);
});

test('reads log files without delay when they are replaced in quick succession', async () => {
  const harness = new Rig();
  await harness.follow();
  harness.stall();
  for (let rotation = 1; rotation <= 10; rotation++) {
    harness.lines(3);
    harness.rotate();
    await harness.clock.advance(20);
    harness.files.remove(stemOf(rotation - 2));
  }
  await harness.clock.advance(100);
  harness.takeAgain();
  const startMs = harness.clock.monotonicMs();
  while (harness.out !== harness.wanted && harness.clock.monotonicMs() - startMs < 100)
    await harness.clock.advance(1);
  assert.equal(harness.out, harness.wanted);
});

test('waits for the rest of a partial line before reading the next log file', async () => {
  const harness = new Rig();
  await harness.follow();
  harness.files.append(path, '2026-01-01T00:00:00Z stdout F ha');
  const old = harness.files.writer(path);
  harness.rotate();
  harness.files.append(path, '2026-01-01T00:00:00Z stdout F more\n');
  await harness.clock.advance(900);
  old('lf\n');
  await harness.clock.advance(1_000);
  assert.equal(harness.out, 'half\nmore\n');
});

test('a follower that is notified before log files are removed still reads them', async () => {
  const harness = new Rig();
  for (let rotation = 1; rotation <= 4; rotation++) {
    harness.lines(3);
    harness.rotate();
  }
  harness.lines();
  harness.stall();
  await harness.follow();
  harness.rotate();
  harness.lines();
  await harness.followers.openRemaining('/logs/ns_pod_uid/main');
  for (let rotation = 1; rotation <= 5; rotation++) harness.files.remove(stemOf(rotation));
  harness.takeAgain();
  await harness.passUntil(() => harness.out === harness.wanted);
  assert.equal(harness.out, harness.wanted);
  harness.stop();
  await harness.passUntil(() => harness.end !== 'open');
  assert.deepEqual([harness.left, harness.followers.size], [[0, 0, 0], 0]);
});

test('keeps many small log files open for a slow reader', async () => {
  const harness = new Rig();
  await harness.follow();
  harness.stall();
  for (let rotation = 1; rotation <= 60; rotation++) {
    harness.lines(3);
    harness.rotate();
    await harness.clock.advance(10);
    harness.files.remove(stemOf(rotation - 2));
  }
  harness.takeAgain();
  await harness.passUntil(() => harness.out === harness.wanted);
  assert.equal(harness.out, harness.wanted);
});

test('a log file that is removed before it was read does not make the reader skip other files', async () => {
  const harness = new Rig();
  harness.lines();
  await harness.follow();
  harness.rotate();
  harness.lines();
  harness.rotate();
  harness.files.remove(stemOf(1));
  harness.lines();
  await harness.passUntil(() => harness.out === harness.wanted);
  assert.equal(harness.out, harness.wanted);
});

test('loses no lines when a log is rotated while it is opened', async () => {
  const harness = new Rig();
  harness.lines();
  const { names } = harness.files;
  harness.files.names = async (directory) => {
    harness.files.names = names;
    harness.rotate();
    return await names.call(harness.files, directory);
  };
  await harness.follow();
  harness.lines();
  harness.rotate();
  harness.lines();
  await harness.clock.advance(3_000);
  assert.equal(harness.out, harness.wanted);
});

test('keeps the order of files when a log is rotated twice during a refresh', async () => {
  for (const moment of ['open', 'later']) {
    const harness = new Rig();
    harness.lines();
    if (moment === 'later') await harness.follow();
    const { names } = harness.files;
    harness.files.names = async (directory) => {
      harness.files.names = names;
      for (const _rotation of [1, 2]) {
        harness.lines(2);
        harness.rotate();
      }
      return await names.call(harness.files, directory);
    };
    if (moment === 'open') await harness.follow();
    harness.lines();
    harness.rotate();
    harness.lines();
    await harness.passUntil(() => harness.out.length >= harness.wanted.length);
    assert.equal(harness.out, harness.wanted, moment);
  }
});

test('reads a log again from its start when the log is truncated in place', async () => {
  const harness = new Rig();
  harness.lines(5);
  await harness.follow();
  harness.files.truncate(path);
  harness.lines(1);
  await harness.clock.advance(2_000);
  assert.equal(harness.out, harness.wanted);
});

test('waits for a followed log that is missing', async () => {
  const harness = new Rig();
  harness.files.remove(path);
  await harness.follow();
  harness.reopen()();
  harness.lines(2);
  await harness.clock.advance(1_500);
  assert.equal(harness.out, harness.wanted);
});

test('with a line limit, shows only the last lines before following the log', async () => {
  const harness = new Rig();
  harness.lines(10);
  await harness.follow({ tailLines: 2 });
  harness.lines(2);
  await harness.clock.advance(0);
  assert.equal(harness.out, '8\n9\n10\n11\n');
  const none = new Rig();
  none.lines(3);
  await none.follow({ tailLines: 0 });
  none.lines(1);
  await none.clock.advance(0);
  assert.equal(none.out, '3\n');
});

test('ends a followed log when the byte limit is reached', async () => {
  const harness = new Rig();
  await harness.follow({ view: { limitBytes: 5 } });
  harness.lines(10);
  await harness.clock.advance(0);
  assert.deepEqual([harness.end, harness.out, harness.left], ['ended', '0\n1\n2', [0, 0, 0]]);
});

test('an aborted log reader leaves no open files', async () => {
  const harness = new Rig();
  harness.lines(3);
  await harness.follow();
  harness.rotate();
  await harness.clock.advance(20);
  harness.abort();
  await harness.clock.advance(0);
  assert.deepEqual([String(harness.end), harness.left], ['KubelingError: enough', [0, 0, 0]]);
});

const act = fc.oneof(
  fc.nat(5).map((count) => (harness: Rig) => harness.lines(count)),
  fc.constant((harness: Rig) => harness.rename()),
  fc.constant((harness: Rig) => harness.rotate()),
  fc.nat(9).map((rotation) => (harness: Rig) => harness.compress(rotation)),
  fc.constant((harness: Rig) => harness.stall()),
  fc.constant((harness: Rig) => harness.takeAgain()),
);

test('no line of a followed log is lost or repeated, however the log is written and rotated', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(act, fc.constantFrom(0, 10, 300, 1_100)), { maxLength: 14 }),
      async (acts) => {
        const harness = new Rig();
        await harness.follow();
        let isRenamed = false;
        for (const [each, ms] of acts) {
          each(harness);
          isRenamed = harness.files.contentOf(path) === undefined;
          if (ms > 0 && !isRenamed) await harness.clock.advance(ms);
        }
        if (isRenamed) harness.reopen()();
        harness.takeAgain();
        harness.stop();
        await harness.passUntil(() => harness.end !== 'open');
        assert.deepEqual([harness.end, harness.out, harness.left], ['ended', harness.wanted, [0, 0, 0]]);
      },
    ),
    { numRuns: 100 },
  );
});
