import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecordedJournal } from '../../../test/fakes/journal.ts';
import { podWith } from '../../../test/fakes/payload-world.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../../lib/index.ts';
import { OwnershipProgress } from './volume-ownership.ts';

function createHarness() {
  const clock = new VirtualClock();
  const journal = new RecordedJournal();
  const logs = collectLogs(clock);
  const news = new OwnershipProgress({ clock, journal, logger: logs.logger }, podWith([]), 'pv');
  const told = () =>
    journal.events.splice(0).map(({ type, reason, message }) => `${type} ${reason} ${message}`);
  return { clock, news, told, logs };
}

const slow =
  'Warning VolumePermissionChangeInProgress Setting volume ownership for pv is taking longer than expected, consider using OnRootMismatch';

test('reports a slow walk after 30 seconds, and its progress every minute', async () => {
  const { clock, news, told } = createHarness();
  await clock.advance(29_999);
  assert.deepEqual(told(), []);
  await clock.advance(1);
  assert.deepEqual(told(), [slow]);
  news.processed(7_000);
  await clock.advance(60_000);
  news.processed(9_000);
  await clock.advance(60_000);
  assert.deepEqual(told(), [`${slow}, processed 7000 files`, `${slow}, processed 9000 files`]);
  news[Symbol.dispose]();
  await clock.advance(600_000);
  assert.deepEqual([told(), clock.pendingTimers], [[], 0]);
});

test('logs the number of files whose group could not be changed', () => {
  const { news, logs, told } = createHarness();
  using _ended = news;
  news.unchanged(3, 'it is immutable');
  assert.match(JSON.stringify([...logs.records]), /Failed to set the group.*it is immutable/);
  assert.deepEqual(told(), []);
});
