import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { objectNamed } from '../../../test/fakes/store-rig.ts';
import { settle, VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { type ApiResource, apiResources } from '../../api/index.ts';
import { collectLogs, KubelingError } from '../../lib/index.ts';
import type { StoredChange } from '../api/api-types.ts';
import { whenAcceptingWrites } from '../storage/durability.ts';
import { CommitQueue } from './commit-queue.ts';
import { StoreCallError, type StoreClient } from './store-thread.ts';
import type { CommitRequest, FileStats, StoreFailureInfo } from './worker/messages.ts';

const { pods, events } = apiResources;
const stats: FileStats = {
  objects: 0,
  logRows: 0,
  logBytes: 0,
  fileBytes: 0,
  walBytes: 0,
  aheadBytes: 0,
};
const full: StoreFailureInfo = { kind: 'full', message: 'database or disk is full' };
const signal = new AbortController().signal;

/** A commit queue with a fake store thread, which the test controls. */
function queueOnOrder() {
  const clock = new VirtualClock();
  const requests: {
    request: CommitRequest;
    done: () => void;
    failed: (failure: StoreFailureInfo) => void;
  }[] = [];
  const call = (request: CommitRequest) => {
    const { promise, resolve, reject } = Promise.withResolvers<FileStats>();
    const failed = (failure: StoreFailureInfo) => reject(new StoreCallError(failure));
    requests.push({ request, done: () => resolve(stats), failed });
    return promise;
  };
  const ends: KubelingError[] = [];
  const { logger, records } = collectLogs(clock);
  const queue = new CommitQueue(
    {
      thread: { call } as unknown as StoreClient,
      clock,
      logger,
      path: '/data/objects.db',
      limits: { rows: 100, bytes: 1_000_000 },
      storeTime: () => clock.monotonicMs(),
      safetyOf: ({ plural }) => (plural === 'events' ? 'system' : 'disk'),
      known: ['/events'],
      onStats: () => {},
      onFailed: (error) => ends.push(error),
    },
    10,
  );
  return { clock, queue, requests, ends, records };
}

function change(version: number, resource: ApiResource = pods): StoredChange {
  return {
    version,
    type: 'ADDED',
    resource,
    object: objectNamed(`o${version}`, resource, {}),
    before: undefined,
  };
}

/** The state of a promise after all pending microtasks. */
async function standingOf(promise: Promise<void>): Promise<string> {
  let standing = 'waiting';
  promise.then(
    () => (standing = 'done'),
    (error) => (standing = error.code),
  );
  await settle();
  return standing;
}

describe('commit queue', () => {
  it('batches changes that arrive while a commit is in progress', async () => {
    const { queue, requests } = queueOnOrder();
    queue.append(change(11));
    queue.append(change(12));
    await settle();
    queue.append(change(13));
    queue.append(change(14));
    await settle();
    assert.equal(requests.length, 1);
    requests[0]?.done();
    await settle();
    assert.deepEqual(
      requests.map(({ request }) => request.rows.map(({ rev }) => rev)),
      [
        [11, 12],
        [13, 14],
      ],
    );
    assert.equal(queue.committed, 12);
  });

  it('syncs to disk unless every change of the batch has a lower sync level', async () => {
    const { queue, requests } = queueOnOrder();
    queue.append(change(11, events));
    await settle();
    queue.append(change(12, events));
    queue.append(change(13));
    requests[0]?.done();
    await settle();
    assert.deepEqual(
      requests.map(({ request }) => request.safety),
      ['system', 'disk'],
    );
  });

  it('sends a resource definition again until it is stored in the file', async () => {
    const { queue, requests } = queueOnOrder();
    queue.append(change(11));
    queue.append(change(12, events));
    await settle();
    requests[0]?.failed(full);
    await settle();
    assert.deepEqual(requests[0]?.request.facts, [['/pods', JSON.stringify(pods)]]);
  });

  it('resolves the waiters of a version when it is committed', async () => {
    const { queue, requests } = queueOnOrder();
    queue.append(change(11));
    await settle();
    queue.append(change(12));
    const [first, second] = [queue.whenCommitted(11, signal), queue.whenCommitted(12, signal)];
    requests[0]?.done();
    assert.deepEqual([await standingOf(first), await standingOf(second)], ['done', 'waiting']);
  });
});

describe('write acceptance of the commit queue', () => {
  it('stops bulk writers at a lower limit than client requests', async () => {
    const { queue, requests } = queueOnOrder();
    for (let index = 0; index < 49; index++) queue.append(change(11 + index));
    assert.equal(queue.acceptsWrites, true);
    queue.append(change(60));
    assert.deepEqual([queue.acceptsWrites, queue.writeProblem()], [false, undefined]);
    await settle();
    requests[0]?.done();
    await settle();
    assert.equal(queue.acceptsWrites, true);
  });

  it('limits the bytes of pending changes, and accepts writes again after a full disk has space', async () => {
    const { clock, queue, requests } = queueOnOrder();
    const data = { text: 'x'.repeat(600_000) };
    queue.append({ ...change(11), object: objectNamed('large', pods, { data }) });
    assert.equal(queue.acceptsWrites, false);
    const room = whenAcceptingWrites(queue, signal);
    await settle();
    requests[0]?.failed(full);
    assert.equal(await standingOf(room), 'waiting');
    await clock.advance(250);
    requests[1]?.done();
    assert.equal(await standingOf(room), 'done');
  });
});

describe('commits to a full disk', () => {
  it('a full disk fails all waiters, and the changes are retried together with new ones', async () => {
    const { clock, queue, requests, records } = queueOnOrder();
    queue.append(change(11));
    const waiting = queue.whenCommitted(11, signal);
    await settle();
    requests[0]?.failed(full);
    await assert.rejects(waiting, {
      code: 'STORE_WRITE',
      message: 'Cannot write to the store /data/objects.db as no room is left on its disk',
    });
    assert.equal(queue.writeProblem()?.code, 'STORE_WRITE');
    queue.append(change(12));
    await clock.advance(250);
    assert.deepEqual(
      requests[1]?.request.rows.map(({ rev }) => rev),
      [11, 12],
    );
    requests[1]?.done();
    await settle();
    assert.equal(queue.writeProblem(), undefined);
    assert.equal(queue.committed, 12);
    assert.deepEqual(
      [...records].map(({ message }) => message),
      ['Failed to write to the store', 'Store is writable again'],
    );
  });

  it('commits to a full disk are retried with a back-off of at most five seconds', async () => {
    const { clock, queue, requests } = queueOnOrder();
    queue.append(change(11));
    await settle();
    const delays: number[] = [];
    for (let round = 0; round < 7; round++) {
      const count = requests.length;
      requests.at(-1)?.failed(full);
      await settle();
      const before = clock.monotonicMs();
      while (requests.length === count) await clock.advance(50);
      delays.push(clock.monotonicMs() - before);
    }
    assert.deepEqual(delays, [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]);
  });
});

describe('permanent store failures', () => {
  it('an exited store thread fails all waiters and is reported to the owner of the queue', async () => {
    const { queue, ends } = queueOnOrder();
    queue.append(change(11));
    const waiting = queue.whenCommitted(11, signal);
    queue.fail(new KubelingError('STORE_ENDED', 'its thread has exited'));
    await assert.rejects(waiting, { code: 'STORE_ENDED' });
    assert.equal(ends.length, 1);
    queue.append(change(12));
    await assert.rejects(queue.whenCommitted(12, signal), { code: 'STORE_ENDED' });
    assert.equal(queue.committed, 10);
  });

  it('a corrupt store file is not retried', async () => {
    const { clock, queue, requests, ends } = queueOnOrder();
    queue.append(change(11));
    await settle();
    requests[0]?.failed({ kind: 'corrupt', message: 'database disk image is malformed' });
    await settle();
    await clock.advance(60_000);
    assert.equal(requests.length, 1);
    assert.equal(ends[0]?.code, 'STORE_CORRUPT');
  });
});
