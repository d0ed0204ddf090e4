import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryRotationFiles } from '../../../../test/fakes/memory-rotation-files.ts';
import { VirtualClock } from '../../../../test/fakes/virtual-clock.ts';
import { memoryFiles, type OpenFile } from '../../../../test/simulator/index.ts';
import { collectLogs, KubelingError } from '../../../lib/index.ts';
import { ContainerLogManager, type LoggingContainer } from './container-log-manager.ts';
import type { RotationFiles } from './rotation-files.ts';

const directory = '/logs/ns_pod_uid/main';
const policy = { maxBytes: 1_000, maxFiles: 4, intervalMs: 10_000, workers: 1 };
const full = () =>
  new KubelingError('FILE_WRITE', 'no', { cause: Object.assign(new Error('x'), { code: 'ENOSPC' }) });

/** A container log manager, and a simulated container that writes, restarts and exits. */
class Rig {
  readonly clock = new VirtualClock();
  readonly logs = collectLogs(this.clock);
  readonly store = memoryFiles();
  readonly files: RotationFiles = memoryRotationFiles(this.store);
  containers: LoggingContainer[] = [];
  reopened = 0;
  refusal: Error | undefined;
  largest = 0;
  readonly #controller = new AbortController();
  #file: OpenFile | undefined;
  #running: Promise<void> = Promise.resolve();

  run(): void {
    this.#running = new ContainerLogManager({
      clock: this.clock,
      logger: this.logs.logger,
      files: this.files,
      policy,
      podLogsDir: '/logs',
      containers: () => this.containers,
      cri: {
        reopenContainerLog: async ({ containerId }) => {
          if (this.refusal !== undefined) throw this.refusal;
          this.reopened++;
          this.#file = this.store.open(this.containers.find(({ id }) => id === containerId)?.logPath ?? '');
          return {};
        },
      },
    }).run(this.#controller.signal);
  }

  start(instance: number): void {
    const ended = this.containers.map((container) => ({ ...container, state: 'ended' }) as const);
    const logPath = `${directory}/${instance}.log`;
    this.containers = [...ended, { id: `c${instance}`, state: 'running', logPath }];
    this.#file = this.store.open(logPath);
  }

  end(): void {
    this.containers = this.containers.map((container) => ({ ...container, state: 'ended' }));
  }

  /** Writes the given number of bytes per step for the given time. */
  async write(bytes: number, { forMs, stepMs = 10 }: { readonly forMs: number; readonly stepMs?: number }) {
    for (let passed = 0; passed < forMs; passed += stepMs) {
      this.#file?.append('x'.repeat(bytes));
      await this.clock.advance(stepMs);
      this.largest = Math.max(this.largest, this.bytes());
    }
  }

  names(): readonly string[] {
    return this.store.names(directory).toSorted();
  }

  bytes(): number {
    return this.names().reduce(
      (sum, name) => sum + (this.store.read(`${directory}/${name}`)?.length ?? 0),
      0,
    );
  }

  toldOfTrouble(): number {
    return this.logs.records.toArray().filter(({ message }) => message === 'Failed to rotate container log')
      .length;
  }

  async stop(): Promise<void> {
    this.#controller.abort(new Error('enough'));
    await this.#running;
    assert.equal(this.clock.pendingTimers, 0);
  }
}

test('rotates a full log, compresses the previous one, and limits the number of files', async () => {
  const harness = new Rig();
  harness.start(0);
  harness.run();
  for (let round = 0; round < 6; round++) await harness.write(10, { forMs: 11_000, stepMs: 100 });
  await harness.stop();
  assert.ok(harness.reopened >= 5, `${harness.reopened}`);
  const names = harness.names();
  assert.equal(names.length, policy.maxFiles);
  assert.deepEqual(
    names.map((name) => name.replace(/\d{8}-\d{6}/, 'T')),
    ['0.log', '0.log.T.gz', '0.log.T.gz', '0.log.T'],
  );
});

test('the files of a fast log are limited, except for what is written between two checks', async () => {
  const harness = new Rig();
  harness.start(0);
  harness.run();
  await harness.clock.advance(60_000);
  await harness.write(100, { forMs: 10_000 });
  // The first check after an idle time waits for the interval; later checks are frequent.
  harness.largest = 0;
  await harness.write(100, { forMs: 60_000 });
  await harness.stop();
  const growth = 100 * (100 / 10);
  assert.ok(harness.largest <= policy.maxBytes * policy.maxFiles + 2 * growth, `${harness.largest}`);
  assert.ok(
    harness.names().every((name) => !name.endsWith('.gz')),
    'a log that is about to be removed is not compressed',
  );
});

test('later compresses rotated logs that were left uncompressed during fast writing', async () => {
  const harness = new Rig();
  harness.start(0);
  harness.run();
  await harness.write(100, { forMs: 20_000 });
  await harness.clock.advance(30_000);
  await harness.stop();
  assert.equal(harness.names().filter((name) => name.endsWith('.gz')).length, policy.maxFiles - 2);
});

test('checks all logs when the disk becomes full', async () => {
  const harness = new Rig();
  let free = 1e9;
  harness.files.freeBytes = async () => free;
  harness.start(0);
  harness.run();
  await harness.clock.advance(120_000);
  await harness.write(5_000, { forMs: 10 });
  free -= 5_000;
  await harness.clock.advance(1_000);
  await harness.stop();
  assert.equal(harness.reopened, 1);
});

test('removes the oldest file of the largest log on a full disk', async () => {
  const harness = new Rig();
  harness.files.freeBytes = async () => (harness.names().length > 2 ? 0 : 1e9);
  for (let at = 0; at < 3; at++) harness.store.write(`${directory}/0.log.20200101-00000${at}.gz`, 'x');
  harness.store.write('/logs/other/0.log.20200101-000000.gz', 'x');
  harness.start(0);
  harness.run();
  await harness.clock.advance(5_000);
  await harness.stop();
  assert.deepEqual(harness.names(), ['0.log', '0.log.20200101-000002.gz']);
});

test('restores the name of a log when the runtime fails to reopen it, and retries the rotation', async () => {
  const harness = new Rig();
  harness.start(0);
  harness.refusal = new KubelingError('CRI_FAILED', 'the fake runtime cannot reopen the log');
  harness.run();
  await harness.write(2_000, { forMs: 10 });
  await harness.clock.advance(5_000);
  assert.deepEqual(harness.names(), ['0.log']);
  assert.equal(harness.toldOfTrouble(), 1);
  harness.refusal = undefined;
  await harness.clock.advance(5_000);
  await harness.stop();
  assert.equal(harness.names().length, 2);
});

test('does not report a rotation that fails because the container has exited', async () => {
  const harness = new Rig();
  harness.start(0);
  harness.refusal = new KubelingError('CRI_FAILED', 'container is not running');
  harness.run();
  await harness.write(2_000, { forMs: 10 });
  await harness.clock.advance(500);
  harness.end();
  await harness.clock.advance(60_000);
  await harness.stop();
  assert.deepEqual([harness.toldOfTrouble(), harness.names()], [0, ['0.log']]);
});

test('lets the runtime reopen a missing log', async () => {
  const harness = new Rig();
  harness.start(0);
  harness.run();
  await harness.clock.advance(5_000);
  harness.store.rename(`${directory}/0.log`, `${directory}/0.log.20200101-000000`);
  await harness.clock.advance(20_000);
  await harness.stop();
  assert.deepEqual([harness.reopened, harness.names()], [1, ['0.log', '0.log.20200101-000000']]);
});

test('compresses and limits logs of earlier instances, also of an exited container', async () => {
  const harness = new Rig();
  for (let at = 0; at < 9; at++) harness.store.write(`${directory}/0.log.20200101-00000${at}`, 'x');
  harness.store.write(`${directory}/0.log.20200101-000003.tmp`, 'x');
  harness.start(0);
  harness.end();
  harness.start(1);
  harness.run();
  await harness.clock.advance(2_000);
  assert.deepEqual(harness.names(), [
    '0.log',
    ...[6, 7, 8].map((at) => `0.log.20200101-00000${at}.gz`),
    '1.log',
  ]);
  await harness.stop();
});

test('on a full disk removes the oldest log and retries the compression', async () => {
  const harness = new Rig();
  const { compress } = harness.files;
  let room = 0;
  harness.files.compress = async (path, signal) => {
    if (room <= 0) throw full();
    await compress(path, signal);
  };
  const { remove } = harness.files;
  harness.files.remove = async (path) => {
    room++;
    await remove(path);
  };
  for (let at = 0; at < 3; at++) harness.store.write(`${directory}/0.log.20200101-00000${at}`, 'x');
  harness.start(0);
  harness.run();
  await harness.clock.advance(40_000);
  await harness.stop();
  assert.deepEqual(harness.names(), ['0.log', '0.log.20200101-000001.gz', '0.log.20200101-000002']);
});

test('on a full disk frees space for a rotation', async () => {
  const harness = new Rig();
  const { rename } = harness.files;
  let refusals = 1;
  harness.files.rename = async (from, to) => {
    if (refusals-- > 0) throw full();
    await rename(from, to);
  };
  harness.store.write(`${directory}/0.log.20200101-000000.gz`, 'x');
  harness.start(0);
  harness.run();
  await harness.write(2_000, { forMs: 10 });
  await harness.clock.advance(2_000);
  await harness.stop();
  assert.equal(harness.reopened, 1);
  assert.ok(!harness.names().includes('0.log.20200101-000000.gz'));
});
