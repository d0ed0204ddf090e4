import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../lib/index.ts';
import { explainNode } from './explain.ts';
import { NodeJournal } from './node-journal.ts';

function createHarness(capacity = 10) {
  const clock = new VirtualClock();
  const { logger, records } = collectLogs(clock);
  const journal = new NodeJournal({ clock, logger, nodeName: 'box', capacity });
  const told = () => journal.story().entries.map(({ message }) => message);
  return { clock, journal, told, records };
}

const warning = (message: string) => ({ type: 'Warning', reason: 'ContainerGCFailed', message }) as const;

test('records a problem when it begins and when its message changes, and its recovery once', () => {
  const { journal, told, records } = createHarness();
  for (const message of ['busy', 'busy', 'full', 'full']) journal.problem('gc', warning(message));
  for (let times = 0; times < 3; times++) journal.recovered('gc', 'well again');
  journal.problem('gc', warning('full'));
  assert.deepEqual(told(), ['busy', 'full', 'well again', 'full']);
  assert.equal([...records].length, 4, 'one line of the log each');
});

test('noteProblem records a problem once although its message changes', () => {
  const { journal, told } = createHarness();
  journal.noteProblem('runtime', 'away: refused');
  journal.noteProblem('runtime', 'away: no answer');
  journal.recovered('runtime', 'back');
  assert.deepEqual(told(), ['away: refused', 'back']);
});

test('counts a repeated event, and drops the oldest entries when full', () => {
  const { journal, told } = createHarness(2);
  journal.event(warning('one'));
  journal.event(warning('one'));
  journal.event(warning('two'));
  journal.note('three');
  assert.deepEqual(told(), ['two', 'three']);
  assert.equal(journal.story().dropped, 1);
});

test('explainNode shows the time of each entry', () => {
  const { journal, clock } = createHarness();
  journal.event({ type: 'Normal', reason: 'Starting', message: 'Starting kubelet.' });
  journal.event(warning('busy'));
  journal.event(warning('busy'));
  journal.note('well again');
  const time = new Date(clock.now()).toISOString();
  assert.equal(
    explainNode(journal.story()),
    [
      'the node box',
      `  ${time}  event              Normal   Starting: Starting kubelet.`,
      `  ${time}  event              Warning  ContainerGCFailed: busy (2 times)`,
      `  ${time}  well again`,
      '',
    ].join('\n'),
  );
});
