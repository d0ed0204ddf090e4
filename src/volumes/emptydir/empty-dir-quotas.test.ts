import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { type NodeEvent, NodeJournal } from '../../journal/node-journal.ts';
import { collectLogs } from '../../lib/index.ts';
import type { DirectoryQuotas } from '../index.ts';
import { EmptyDirQuotas } from './empty-dir-quotas.ts';

const { signal } = new AbortController();

function rig(wish: 'enforced' | 'off', answers: (string | undefined)[] = []) {
  const clock = new VirtualClock();
  const { logger, records } = collectLogs(clock);
  const asked: string[] = [];
  const told: NodeEvent[] = [];
  const answer = (what: string) => async (at: string | readonly string[]) => {
    asked.push(`${what} ${at}`);
    return answers.shift();
  };
  const quotas: DirectoryQuotas = {
    problemIn: answer('look'),
    limit: answer('limit'),
    release: answer('release'),
  };
  const node = new NodeJournal({ clock, logger, nodeName: 'n', tell: (event) => void told.push(event) });
  return {
    asked,
    told,
    records,
    made: new EmptyDirQuotas({ quotas, mode: wish, rootDir: '/r', node, logger }),
  };
}

test('sets no limits unless enabled, but releases existing ones', async () => {
  const { asked, told, made } = rig('off');
  await made.open(signal);
  assert.equal(made.limit, undefined);
  await made.release(['/a', '/b'], signal);
  assert.deepEqual(asked, ['release /a,/b']);
  assert.deepEqual(told, []);
});

test('reports an unsupported file system once per reason and fails no pod', async () => {
  const why = 'not mounted with prjquota';
  const { asked, told, made } = rig('enforced', [why, why, why, undefined, 'no program']);
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

test('removes the directory even if its quota cannot be released', async () => {
  const { made, records, told } = rig('off', ['setquota failed']);
  await made.release(['/a'], signal);
  assert.deepEqual(told, []);
  assert.match(JSON.stringify([...records]), /setquota failed/);
});
