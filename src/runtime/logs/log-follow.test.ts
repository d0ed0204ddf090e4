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
  /** The rotated file that the container still writes to until its log is reopened. */
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

  /** Removes the name; the container still writes to the old file. */
  rename(): void {
    const isWritten = this.#written === undefined && this.files.contentOf(path) !== undefined;
    this.files.rename(path, stemOf(++this.#rotations));
    if (isWritten) this.#written = this.#rotations;
  }

  /** Creates a new file while the container still writes to the old one. */
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

  /** Compresses only files that are no longer written; later lines would be lost. */
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

  /** Advances virtual time until the condition holds. Decompression runs in real time. */
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

test('a followed log shows lines immediately and ends with the container', async () => {
  const rig = new Rig();
  rig.lines(2);
  await rig.follow();
  assert.equal(rig.out, '0\n1\n');
  rig.lines();
  await rig.clock.advance(0);
  assert.equal(rig.out, rig.wanted);
  rig.stop();
  rig.lines();
  await rig.clock.advance(1_050);
  rig.lines();
  await rig.clock.advance(1_000);
  assert.deepEqual([rig.end, rig.out, rig.left], ['ended', rig.wanted, [0, 0, 0]]);
});

test('a partial line is shown immediately, its rest when it is written', async () => {
  const rig = new Rig();
  await rig.follow();
  rig.files.append(path, '2026-01-01T00:00:00Z std');
  await rig.clock.advance(1_000);
  rig.files.append(path, 'out F ha');
  await rig.clock.advance(1_000);
  assert.equal(rig.out, 'ha');
  rig.files.append(path, 'lf\n');
  await rig.clock.advance(0);
  assert.equal(rig.out, 'half\n');
});

test('a replaced file is read completely before the next one', async () => {
  const rig = new Rig();
  await rig.follow();
  rig.lines();
  rig.rename();
  rig.lines();
  await rig.clock.advance(500);
  const takeNew = rig.reopen();
  await rig.clock.advance(50);
  rig.lines();
  await rig.clock.advance(60);
  rig.lines();
  takeNew();
  rig.lines();
  await rig.clock.advance(300);
  assert.equal(rig.out, rig.wanted);
});

test('a slow reader misses no lines during many rotations', async () => {
  const rig = new Rig();
  await rig.follow();
  rig.stall();
  for (let rotation = 1; rotation <= 6; rotation++) {
    rig.lines(3);
    await rig.clock.advance(1_200);
    rig.rotate();
    rig.compress(rotation - 1);
    rig.files.remove(`${stemOf(rotation - 3)}.gz`);
  }
  rig.lines();
  rig.takeAgain();
  await rig.passUntil(() => rig.out === rig.wanted);
  assert.equal(rig.out, rig.wanted);
});

test('several rotations between two refreshes are all read', async () => {
  const rig = new Rig();
  rig.lines();
  await rig.follow();
  rig.lines();
  rig.rotate();
  rig.lines();
  rig.rotate();
  rig.lines();
  rig.rotate();
  rig.compress(1);
  rig.lines();
  await rig.passUntil(() => rig.out === rig.wanted);
  assert.equal(rig.out, rig.wanted);
});

test('files that are replaced quickly are read without delay', async () => {
  const rig = new Rig();
  await rig.follow();
  rig.stall();
  for (let rotation = 1; rotation <= 10; rotation++) {
    rig.lines(3);
    rig.rotate();
    await rig.clock.advance(20);
    rig.files.remove(stemOf(rotation - 2));
  }
  await rig.clock.advance(100);
  rig.takeAgain();
  const startMs = rig.clock.monotonicMs();
  while (rig.out !== rig.wanted && rig.clock.monotonicMs() - startMs < 100) await rig.clock.advance(1);
  assert.equal(rig.out, rig.wanted);
});

test('a partial line is completed before the next file is read', async () => {
  const rig = new Rig();
  await rig.follow();
  rig.files.append(path, '2026-01-01T00:00:00Z stdout F ha');
  const old = rig.files.writer(path);
  rig.rotate();
  rig.files.append(path, '2026-01-01T00:00:00Z stdout F more\n');
  await rig.clock.advance(900);
  old('lf\n');
  await rig.clock.advance(1_000);
  assert.equal(rig.out, 'half\nmore\n');
});

test('a follower that is notified before files are removed still reads them', async () => {
  const rig = new Rig();
  for (let rotation = 1; rotation <= 4; rotation++) {
    rig.lines(3);
    rig.rotate();
  }
  rig.lines();
  rig.stall();
  await rig.follow();
  rig.rotate();
  rig.lines();
  await rig.followers.openRemaining('/logs/ns_pod_uid/main');
  for (let rotation = 1; rotation <= 5; rotation++) rig.files.remove(stemOf(rotation));
  rig.takeAgain();
  await rig.passUntil(() => rig.out === rig.wanted);
  assert.equal(rig.out, rig.wanted);
  rig.stop();
  await rig.passUntil(() => rig.end !== 'open');
  assert.deepEqual([rig.left, rig.followers.size], [[0, 0, 0], 0]);
});

test('many small files stay open for a slow reader', async () => {
  const rig = new Rig();
  await rig.follow();
  rig.stall();
  for (let rotation = 1; rotation <= 60; rotation++) {
    rig.lines(3);
    rig.rotate();
    await rig.clock.advance(10);
    rig.files.remove(stemOf(rotation - 2));
  }
  rig.takeAgain();
  await rig.passUntil(() => rig.out === rig.wanted);
  assert.equal(rig.out, rig.wanted);
});

test('a file removed unread does not skip other files', async () => {
  const rig = new Rig();
  rig.lines();
  await rig.follow();
  rig.rotate();
  rig.lines();
  rig.rotate();
  rig.files.remove(stemOf(1));
  rig.lines();
  await rig.passUntil(() => rig.out === rig.wanted);
  assert.equal(rig.out, rig.wanted);
});

test('a rotation while the log is opened loses nothing', async () => {
  const rig = new Rig();
  rig.lines();
  const { names } = rig.files;
  rig.files.names = async (directory) => {
    rig.files.names = names;
    rig.rotate();
    return await names.call(rig.files, directory);
  };
  await rig.follow();
  rig.lines();
  rig.rotate();
  rig.lines();
  await rig.clock.advance(3_000);
  assert.equal(rig.out, rig.wanted);
});

test('two rotations during a refresh keep the order', async () => {
  for (const moment of ['open', 'later']) {
    const rig = new Rig();
    rig.lines();
    if (moment === 'later') await rig.follow();
    const { names } = rig.files;
    rig.files.names = async (directory) => {
      rig.files.names = names;
      for (const _rotation of [1, 2]) {
        rig.lines(2);
        rig.rotate();
      }
      return await names.call(rig.files, directory);
    };
    if (moment === 'open') await rig.follow();
    rig.lines();
    rig.rotate();
    rig.lines();
    await rig.passUntil(() => rig.out.length >= rig.wanted.length);
    assert.equal(rig.out, rig.wanted, moment);
  }
});

test('a log truncated in place is read from its start again', async () => {
  const rig = new Rig();
  rig.lines(5);
  await rig.follow();
  rig.files.truncate(path);
  rig.lines(1);
  await rig.clock.advance(2_000);
  assert.equal(rig.out, rig.wanted);
});

test('a missing log is awaited', async () => {
  const rig = new Rig();
  rig.files.remove(path);
  await rig.follow();
  rig.reopen()();
  rig.lines(2);
  await rig.clock.advance(1_500);
  assert.equal(rig.out, rig.wanted);
});

test('with a line limit only the last lines precede the followed ones', async () => {
  const rig = new Rig();
  rig.lines(10);
  await rig.follow({ tailLines: 2 });
  rig.lines(2);
  await rig.clock.advance(0);
  assert.equal(rig.out, '8\n9\n10\n11\n');
  const none = new Rig();
  none.lines(3);
  await none.follow({ tailLines: 0 });
  none.lines(1);
  await none.clock.advance(0);
  assert.equal(none.out, '3\n');
});

test('reaching the byte limit ends the stream', async () => {
  const rig = new Rig();
  await rig.follow({ view: { limitBytes: 5 } });
  rig.lines(10);
  await rig.clock.advance(0);
  assert.deepEqual([rig.end, rig.out, rig.left], ['ended', '0\n1\n2', [0, 0, 0]]);
});

test('an aborted reader leaves no open files', async () => {
  const rig = new Rig();
  rig.lines(3);
  await rig.follow();
  rig.rotate();
  await rig.clock.advance(20);
  rig.abort();
  await rig.clock.advance(0);
  assert.deepEqual([String(rig.end), rig.left], ['KubelingError: enough', [0, 0, 0]]);
});

const act = fc.oneof(
  fc.nat(5).map((count) => (rig: Rig) => rig.lines(count)),
  fc.constant((rig: Rig) => rig.rename()),
  fc.constant((rig: Rig) => rig.rotate()),
  fc.nat(9).map((rotation) => (rig: Rig) => rig.compress(rotation)),
  fc.constant((rig: Rig) => rig.stall()),
  fc.constant((rig: Rig) => rig.takeAgain()),
);

test('no line is lost or repeated, however a log is written and rotated', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(act, fc.constantFrom(0, 10, 300, 1_100)), { maxLength: 14 }),
      async (acts) => {
        const rig = new Rig();
        await rig.follow();
        let isRenamed = false;
        for (const [each, ms] of acts) {
          each(rig);
          isRenamed = rig.files.contentOf(path) === undefined;
          if (ms > 0 && !isRenamed) await rig.clock.advance(ms);
        }
        if (isRenamed) rig.reopen()();
        rig.takeAgain();
        rig.stop();
        await rig.passUntil(() => rig.end !== 'open');
        assert.deepEqual([rig.end, rig.out, rig.left], ['ended', rig.wanted, [0, 0, 0]]);
      },
    ),
    { numRuns: 100 },
  );
});
