import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { ownDirectory, StoreRig } from '../../../test/fakes/store-rig.ts';
import { collectLogs, type KubelingError, realClock } from '../../lib/index.ts';
import { FileStore } from './file-store.ts';
import { restore } from './restore.ts';
import { prepareDirectory, prepareFile } from './store-files.ts';
import { StoreThread } from './store-thread.ts';
import type { ChangeRow } from './worker/messages.ts';

const signal = new AbortController().signal;

/** A size above the heap limit of the thread. */
function tooMuch(): ChangeRow[] {
  return Array.from({ length: 700_000 }, (_, rev) => ({
    rev,
    key: `k${rev}`,
    op: 'ADDED',
    value: `v${rev}`,
    ts: 0,
  }));
}

async function storeOn(path: string, failed: KubelingError[]) {
  await prepareDirectory(path);
  await prepareFile(path);
  const thread = new StoreThread((error) => store.fail(error));
  const opened = await thread.call({ do: 'open', path }, signal);
  const clock = realClock();
  const store = new FileStore({
    path,
    aside: undefined,
    clock,
    logger: collectLogs(clock).logger,
    log: { keepMs: 1_000, keepRows: 1_000, keepBytes: 1_000_000 },
    queue: { rows: 1_000, bytes: 1_000_000 },
    safetyOf: () => 'disk',
    onFailed: (error) => failed.push(error),
    thread,
    unlock: async () => {},
    opened,
    restored: await restore(thread, opened, signal),
  });
  return { thread, store };
}

describe('store thread', () => {
  it('an exited store thread fails its callers, and committed changes are not lost', async () => {
    await using dir = await ownDirectory();
    const path = join(dir.path, 'api', 'objects.db');
    const failed: KubelingError[] = [];
    const { thread, store } = await storeOn(path, failed);
    await using first = new StoreRig(store);
    await first.write('safe');
    const dying = thread.call({ do: 'commit', rows: tooMuch(), safety: 'disk', facts: [] }, signal);
    const waiting = first.write('lost');
    await Promise.all([
      assert.rejects(dying, { code: 'STORE_ENDED', message: /its thread has exited/ }),
      assert.rejects(waiting, { code: 'STORE_ENDED' }),
    ]);
    assert.deepEqual(
      failed.map(({ code }) => code),
      ['STORE_ENDED'],
    );
    assert.equal(store.writeProblem()?.code, 'STORE_ENDED');
    await assert.rejects(first.write('next'), { code: 'STORE_ENDED' });
    await first[Symbol.asyncDispose]();

    await using second = await StoreRig.open(path);
    assert.ok(second.get('safe'));
    assert.equal(second.get('lost'), undefined);
  });

  it('a failed request does not end the store thread', async () => {
    await using dir = await ownDirectory();
    const thread = new StoreThread(() => {});
    try {
      await assert.rejects(thread.call({ do: 'tidy' }, signal), /it is not open/);
      await mkdir(join(dir.path, 'a.db'));
      await assert.rejects(thread.call({ do: 'open', path: join(dir.path, 'a.db') }, signal), {
        name: 'StoreCallError',
      });
      await prepareFile(join(dir.path, 'b.db'));
      const { revision } = await thread.call({ do: 'open', path: join(dir.path, 'b.db') }, signal);
      assert.equal(revision, 0);
    } finally {
      await thread.terminate();
    }
    await assert.rejects(thread.call({ do: 'tidy' }, signal), { code: 'STORE_ENDED' });
  });
});
