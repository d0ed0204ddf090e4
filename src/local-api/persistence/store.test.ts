import assert from 'node:assert/strict';
import { copyFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { LocalApiRig } from '../../../test/fakes/local-api-rig.ts';
import { assertLogIsWhole, ownDirectory, StoreRig } from '../../../test/fakes/store-rig.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { apiResources } from '../../api/index.ts';
import { collectLogs, realClock } from '../../lib/index.ts';
import { VersionedStore } from '../api/index.ts';
import { openStore } from './index.ts';

const { events, leases, nodes } = apiResources;

async function pathIn(dir: { readonly path: string }): Promise<string> {
  return join(dir.path, 'api', 'objects.db');
}

describe('store on disk', () => {
  it('a new store is empty and has version 1', async () => {
    await using dir = await ownDirectory();
    await using harness = await StoreRig.open(await pathIn(dir));
    assert.deepEqual(harness.store.restored, { version: 1, compacted: 0, objects: [], log: [] });
    assert.equal(harness.store.committed, 1);
    assert.equal(harness.store.writeProblem(), undefined);
  });

  it('objects and changes are restored after a restart', async () => {
    await using dir = await ownDirectory();
    const path = await pathIn(dir);
    await using first = await StoreRig.open(path);
    first.put('a', { spec: { image: 'ünï → 1' } });
    first.put('b');
    first.put('a', { spec: { image: '2' } });
    first.put('n', {}, nodes);
    first.remove('b');
    const version = await first.write('c');
    const log = first.objects.changesAfter(apiResources.pods, 0) ?? [];
    await first[Symbol.asyncDispose]();

    await using second = await StoreRig.open(path);
    assert.equal(second.store.restored.version, version);
    assert.deepEqual(second.objects.all(apiResources.pods), first.objects.all(apiResources.pods));
    assert.deepEqual(second.objects.all(nodes), first.objects.all(nodes));
    assert.deepEqual(
      second.objects.changesAfter(apiResources.pods, 0),
      log.map(({ version, type, resource, object, before }) => ({ version, type, resource, object, before })),
    );
    assertLogIsWhole(second.store);
    assert.equal(await second.write('d'), version + 1);
    assert.throws(() => second.store.restored, { code: 'BUG' }, 'it is let go of');
  });

  it('concurrent changes are committed in one transaction', async () => {
    await using dir = await ownDirectory();
    await using harness = await StoreRig.open(await pathIn(dir));
    const reported: number[] = [];
    using _link = harness.store.onCommitted((version) => reported.push(version));
    const versions = Array.from({ length: 50 }, (_, index) => harness.put(`p${index}`));
    assert.equal(harness.store.stats().waiting, 50);
    await harness.store.whenCommitted(harness.objects.version, AbortSignal.timeout(60_000));
    assert.deepEqual(reported, [versions.at(-1)]);
    const { commits, objects, logRows, waiting, fileBytes } = harness.store.stats();
    assert.deepEqual(
      { commits, objects, logRows, waiting },
      { commits: 1, objects: 50, logRows: 50, waiting: 0 },
    );
    assert.ok(fileBytes > 0);
  });

  it('a waiter for a commit can abort, and the change is still committed', async () => {
    await using dir = await ownDirectory();
    await using harness = await StoreRig.open(await pathIn(dir));
    const version = harness.put('a');
    const waiting = harness.store.whenCommitted(version, AbortSignal.abort(new Error('enough')));
    await assert.rejects(waiting, /enough/);
    await harness.store.whenCommitted(version, AbortSignal.timeout(60_000));
  });

  it('compacting the history in memory writes nothing to the file', async () => {
    await using dir = await ownDirectory();
    await using harness = await StoreRig.open(await pathIn(dir));
    const version = harness.put('a');
    harness.objects.compact();
    await harness.store.whenCommitted(harness.objects.version, AbortSignal.timeout(60_000));
    assert.deepEqual([harness.objects.version, harness.store.committed], [version, version]);
  });

  it('directory and files are created with private modes', async () => {
    await using dir = await ownDirectory();
    const path = await pathIn(dir);
    await using harness = await StoreRig.open(path);
    await harness.write('a');
    const modes = await Promise.all(
      [dirname(path), path, `${path}-wal`, `${path}.lock`].map(
        async (file) => (await stat(file)).mode & 0o777,
      ),
    );
    assert.deepEqual(modes, [0o700, 0o600, 0o600, 0o600]);
  });

  it('a second open fails with an error that names the process with the lock', async () => {
    await using dir = await ownDirectory();
    const path = await pathIn(dir);
    await using _rig = await StoreRig.open(path);
    await assert.rejects(StoreRig.open(path), {
      code: 'LOCK_HELD',
      message: new RegExp(`objects.db.lock.* process ${process.pid} holds it`),
    });
  });

  it('a store can be closed twice, and then rejects writes', async () => {
    await using dir = await ownDirectory();
    await using harness = await StoreRig.open(await pathIn(dir));
    const signal = AbortSignal.timeout(60_000);
    harness.put('a');
    await Promise.all([harness.store.close(signal), harness.store.close(signal)]);
    assert.equal(harness.store.committed, 2);
    assert.equal(harness.store.writeProblem()?.code, 'STORE_ENDED');
    const version = harness.put('b');
    await assert.doesNotReject(harness.store.whenCommitted(2, signal));
    await assert.rejects(harness.store.whenCommitted(version, signal), { code: 'STORE_ENDED' });
  });
});

describe('changes with the sync level `system`', () => {
  it('changes with sync level system survive a restart, and their versions are not assigned again', async () => {
    await using dir = await ownDirectory();
    const path = await pathIn(dir);
    await using first = await StoreRig.open(path);
    await first.write('e', {}, events);
    const version = await first.write('l', {}, leases);
    await first[Symbol.asyncDispose]();
    await using second = await StoreRig.open(path);
    assert.equal(second.store.restored.version, version);
    assert.ok(second.get('e', events));
    assert.ok(second.get('l', leases));
  });

  it('changes with sync level system are lost in a power failure, and their versions are not assigned again', async () => {
    await using dir = await ownDirectory();
    const path = await pathIn(dir);
    await using harness = await StoreRig.open(path);
    await harness.write('first', {}, events);
    // Copies the files as a power failure would leave them on the disk.
    const left = join(dir.path, 'left.db');
    for (const part of ['', '-wal']) await copyFile(path + part, left + part);
    const lost = await harness.write('second', {}, events);
    await using after = await StoreRig.open(left);
    assert.equal(after.get('second', events), undefined);
    assert.ok(after.store.restored.version >= lost);
    assert.ok((await after.write('third')) > lost);
  });
});

describe('age of changes in the store log', () => {
  it('the age of a change is measured while the store is open, independent of clock jumps', async () => {
    await using dir = await ownDirectory();
    const path = await pathIn(dir);
    const open = async (clock: VirtualClock) => await StoreRig.open(path, { clock });
    // The change is written while the clock is years ahead, and read after the clock was set back.
    const future = new VirtualClock({ startMs: Date.UTC(2040, 0, 1) });
    await using first = await open(future);
    await first.write('a');
    await first[Symbol.asyncDispose]();

    const past = new VirtualClock({ startMs: Date.UTC(2001, 0, 1) });
    await using second = await open(past);
    assert.equal(second.store.restored.log.length, 1);
    await past.advance(4 * 60_000);
    await second.write('b');
    assert.equal(second.store.stats().logRows, 2);
    await until(
      () => second.store.stats().compacted > 0,
      () => past.advance(30_000),
    );
    assert.equal(second.store.stats().objects, 2);
  });
});

describe('size of the store file', () => {
  it('compaction removes surplus changes in small batches and frees their space', async () => {
    await using dir = await ownDirectory();
    const path = await pathIn(dir);
    const clock = new VirtualClock();
    await using first = await StoreRig.open(path, { clock, log: { keepMs: 86_400_000, keepRows: 100 } });
    const data = 'x'.repeat(8_000);
    for (let round = 0; round < 8; round++) {
      for (let index = 0; index < 200; index++) first.put(`p${index}`, { data });
      await first.store.whenCommitted(first.objects.version, AbortSignal.timeout(60_000));
    }
    const isTidy = () => first.store.stats().logRows <= 125 && first.store.stats().walBytes === 0;
    await until(isTidy, () => clock.advance(10_000));
    assert.ok(first.store.stats().compacted >= 1_475);
    const { fileBytes } = first.store.stats();
    assert.ok(fileBytes < 8_000_000, `the file has ${fileBytes} bytes`);
    await first[Symbol.asyncDispose]();

    await using second = await StoreRig.open(path);
    assertLogIsWhole(second.store);
    assert.equal(second.store.restored.objects.length, 200);
    assert.equal(second.store.restored.log[0]?.version, second.store.restored.compacted + 1);
    assert.equal(second.objects.changesAfter(apiResources.pods, 5), undefined);
  });

  it('the log is also limited in bytes', async () => {
    await using dir = await ownDirectory();
    await using harness = await StoreRig.open(await pathIn(dir), { log: { keepBytes: 100_000 } });
    for (let index = 0; index < 100; index++) await harness.write('p', { data: 'y'.repeat(5_000) });
    await until(() => harness.store.stats().logBytes <= 125_000);
  });
});

describe('too many pending changes', () => {
  it('writes are rejected before the store fails', async () => {
    await using dir = await ownDirectory();
    await using harness = await StoreRig.open(await pathIn(dir), { queue: { rows: 10 } });
    for (let index = 0; index < 10; index++) harness.put(`p${index}`);
    assert.equal(harness.store.writeProblem()?.code, 'STORE_BUSY');
    await harness.store.whenCommitted(harness.objects.version, AbortSignal.timeout(60_000));
    assert.equal(harness.store.writeProblem(), undefined);
  });

  it('deletecollection waits instead of exceeding the limit of pending changes', async () => {
    await using dir = await ownDirectory();
    const options = { path: await pathIn(dir), queue: { rows: 4 }, clock: realClock() };
    const { logger } = collectLogs(options.clock);
    await using opened = await openStore({ ...options, logger }, new AbortController().signal);
    const store = VersionedStore.restore(opened.restored, { historyLimit: 1_000 });
    using harness = new LocalApiRig({ store, durability: opened });
    for (let index = 0; index < 60; index++) await harness.configMap(`c${index}`);
    await harness.ask('deletecollection', apiResources.configMaps);
    assert.deepEqual([opened.writeProblem(), store.all(apiResources.configMaps)], [undefined, []]);
  });

  it('a writer that ignores the back-pressure makes the store fail', async () => {
    await using dir = await ownDirectory();
    const failed: string[] = [];
    const onFailed = (error: Error) => failed.push(error.message);
    await using harness = await StoreRig.open(await pathIn(dir), { queue: { rows: 10 }, onFailed });
    for (let index = 0; index < 100; index++) harness.put(`p${index}`);
    assert.equal(failed.length, 1);
    assert.match(failed[0] ?? '', /41 changes wait to be written/);
    await assert.rejects(harness.write('q'), { code: 'STORE_ENDED' });
  });
});

/** Polls a condition while other tasks run. */
async function until(isSo: () => boolean, meanwhile: () => Promise<void> = async () => {}): Promise<void> {
  const signal = AbortSignal.timeout(60_000);
  while (!isSo()) {
    signal.throwIfAborted();
    await meanwhile();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
