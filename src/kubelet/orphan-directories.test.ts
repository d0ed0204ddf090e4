import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import type { DirectoryRemoval } from '../checkpoints/pod-directories.ts';
import { NodeJournal } from '../journal/index.ts';
import { collectLogs, seededRandom } from '../lib/index.ts';
import { type PodUid, podUid } from '../pods/index.ts';
import { OrphanDirectories } from './orphan-directories.ts';

const { signal } = new AbortController();
const uid = podUid('u1');

function createHarness(answer: () => Promise<DirectoryRemoval>) {
  const clock = new VirtualClock();
  const { logger, records } = collectLogs(clock);
  const node = new NodeJournal({ clock, logger, nodeName: 'box' });
  const tries: number[] = [];
  const startMs = clock.monotonicMs();
  const directories = {
    of: (of: PodUid) => `/root/pods/${of}`,
    async remove() {
      tries.push((clock.monotonicMs() - startMs) / 1_000);
      return await answer();
    },
  };
  const random = seededRandom(1);
  const forgotten: PodUid[] = [];
  const checkpoints = { directoryRemoved: (removed: PodUid) => void forgotten.push(removed) };
  const isDesired = () => false;
  const orphans = new OrphanDirectories({
    clock,
    random,
    logger,
    node,
    directories,
    checkpoints,
    isDesired,
  });
  /** Starts removals every two seconds, like housekeeping. */
  const keepHouse = async (forMs: number, found: readonly PodUid[] = [uid]) => {
    for (let passedMs = 0; passedMs < forMs; passedMs += 2_000) {
      orphans.removeSoon(new Set(found), signal);
      await clock.advance(2_000);
    }
  };
  return { orphans, keepHouse, tries, records, node, forgotten };
}

const blocked = { kind: 'blocked', path: '/root/pods/u1/volumes/x', why: 'is mounted' } as const;

test('retries a directory that cannot be removed with back-off, and logs once what blocks its removal', async () => {
  const { keepHouse, tries, records, orphans } = createHarness(async () => blocked);
  await keepHouse(8 * 60_000);
  assert.ok(tries.length >= 5 && tries.length <= 9, `tried at ${tries.join(', ')}`);
  assert.deepEqual(
    [...records].map(({ message, fields }) => [message, fields?.['because']]),
    [['Failed to remove directory of deleted pod', '/root/pods/u1/volumes/x is mounted']],
  );
  assert.deepEqual(orphans.counts, { orphans: 1, blocked: 1 });
});

test('records a node event when a directory could not be removed for ten minutes, and another when it is removed', async () => {
  let response: DirectoryRemoval = blocked;
  const { keepHouse, node, orphans, forgotten } = createHarness(async () => response);
  await keepHouse(9 * 60_000);
  assert.deepEqual(node.story().entries, []);
  await keepHouse(20 * 60_000);
  assert.deepEqual(forgotten, []);
  response = { kind: 'removed' };
  await keepHouse(10 * 60_000);
  assert.equal(forgotten[0], uid);
  assert.deepEqual(
    node.story().entries.map(({ message }) => message),
    [
      'The directory /root/pods/u1 of a deleted pod could not be removed for 10m0s: /root/pods/u1/volumes/x is mounted',
      'The directory /root/pods/u1 is removed now',
    ],
  );
  assert.deepEqual(orphans.counts, { orphans: 0, blocked: 0 });
});

test('reports the error of a failed removal as the reason, and stops reporting a directory that another process has removed', async () => {
  const { keepHouse, records, orphans } = createHarness(async () => {
    throw new Error('EBUSY: resource busy, rmdir /root/pods/u1/x');
  });
  await keepHouse(4_000);
  assert.match(String([...records][0]?.fields?.['because']), /rmdir \/root\/pods\/u1\/x/);
  await keepHouse(2_000, []);
  assert.deepEqual(orphans.counts, { orphans: 0, blocked: 0 });
});

test('does not repeat a removal that hangs, and removes other directories during it', async () => {
  const { keepHouse, tries, orphans } = createHarness(() => new Promise(() => {}));
  await keepHouse(60_000, [uid, podUid('u2')]);
  assert.equal(tries.length, 2);
  assert.deepEqual(orphans.counts, { orphans: 2, blocked: 0 });
});
