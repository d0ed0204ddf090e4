import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { type NodeEvent, NodeJournal } from '../../journal/node-journal.ts';
import { collectLogs } from '../../lib/index.ts';
import type { DirectoryQuotas } from '../index.ts';
import { EmptyDirQuotas } from './empty-dir-quotas.ts';

const { signal } = new AbortController();

function createHarness(options: 'enforced' | 'off', responses: (string | undefined)[] = []) {
  const clock = new VirtualClock();
  const { logger, records } = collectLogs(clock);
  const requests: string[] = [];
  const reported: NodeEvent[] = [];
  const answer = (what: string) => async (at: string | readonly string[]) => {
    requests.push(`${what} ${at}`);
    return responses.shift();
  };
  const quotas: DirectoryQuotas = {
    problemIn: answer('look'),
    limit: answer('limit'),
    release: answer('release'),
  };
  const node = new NodeJournal({ clock, logger, nodeName: 'n', tell: (event) => void reported.push(event) });
  return {
    asked: requests,
    told: reported,
    records,
    made: new EmptyDirQuotas({ quotas, mode: options, rootDir: '/r', node, logger }),
  };
}

test('sets no quotas while the feature is disabled, but releases existing ones', async () => {
  const { asked, told, made } = createHarness('off');
  await made.open(signal);
  assert.equal(made.limit, undefined);
  await made.release(['/a', '/b'], signal);
  assert.deepEqual(asked, ['release /a,/b']);
  assert.deepEqual(told, []);
});

test('reports a file system without quotas once per reason and rejects no pod', async () => {
  const why = 'not mounted with prjquota';
  const { asked, told, made } = createHarness('enforced', [why, why, why, undefined, 'no program']);
  await made.open(signal);
  for (let pod = 0; pod < 4; pod++) await made.limit?.(`/pods/${pod}`, 1n, signal);
  assert.deepEqual(asked[0], 'look /r');
  assert.equal(asked.length, 5);
  const message = (because: string) =>
    `emptyDir volumes are not held to their sizeLimit by the kernel: ${because}`;
  assert.deepEqual(
    told.map((event) => [event.reason, event.message]),
    [
      ['EmptyDirQuotaUnavailable', message(why)],
      ['EmptyDirQuotaUnavailable', message('no program')],
    ],
  );
});

test('removes an emptyDir even if its quota cannot be released', async () => {
  const { made, records, told } = createHarness('off', ['setquota failed']);
  await made.release(['/a'], signal);
  assert.deepEqual(told, []);
  assert.match(JSON.stringify([...records]), /setquota failed/);
});
