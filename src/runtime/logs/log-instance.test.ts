import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContainerState, ContainerStatus } from '../../kinds/index.ts';
import { chooseLogInstance, type WantedInstance } from './log-instance.ts';

const running: ContainerState = { running: {} };
const ended = (containerID: string): ContainerState => ({ terminated: { exitCode: 1, containerID } });
const waiting = (reason: string): ContainerState => ({ waiting: { reason } });

function choose(status: Partial<ContainerStatus> | undefined, wanted: WantedInstance = { which: 'newest' }) {
  const whole = { name: 'c', ready: false, restartCount: 0, image: '', imageID: '', ...status };
  const chosen = chooseLogInstance(
    'p',
    status === undefined ? {} : { containerStatuses: [whole] },
    'c',
    wanted,
  );
  return chosen.kind === 'found' ? chosen.containerId : chosen.message;
}

const rows: readonly (readonly [string, Partial<ContainerStatus> | undefined, string])[] = [
  ['one that runs', { state: running, containerID: 'x://1', lastState: ended('x://0') }, 'x://1'],
  ['one that ended', { state: ended('x://1'), lastState: ended('x://0') }, 'x://1'],
  ['one whose successor never came to be', { state: ended(''), lastState: ended('x://0') }, 'x://0'],
  [
    'one that is to be started again',
    { state: waiting('CrashLoopBackOff'), lastState: ended('x://0') },
    'x://0',
  ],
  ['one of which nothing is left', { state: ended('') }, 'container "c" in pod "p" is terminated'],
  ['one that nobody knows', undefined, 'container "c" in pod "p" is not available'],
  ['one without a state', {}, 'container "c" in pod "p" is waiting to start - no logs yet'],
  [
    'one that is made',
    { state: waiting('ContainerCreating') },
    'container "c" in pod "p" is waiting to start: ContainerCreating',
  ],
  [
    'one without its image',
    { state: waiting('ErrImagePull') },
    'container "c" in pod "p" is waiting to start: image can\'t be pulled',
  ],
  [
    'one still without its image',
    { state: waiting('ImagePullBackOff') },
    'container "c" in pod "p" is waiting to start: trying and failing to pull image',
  ],
];

for (const [what, status, answer] of rows) {
  test(`the log of ${what}: ${answer}`, () => assert.equal(choose(status), answer));
}

test('the instance before is the one that ended last', () => {
  const previous = { which: 'previous' } as const;
  assert.equal(
    choose({ state: running, containerID: 'x://1', lastState: ended('x://0') }, previous),
    'x://0',
  );
  const none = 'previous terminated container "c" in pod "p" not found';
  assert.equal(choose({ state: running, containerID: 'x://1' }, previous), none);
  assert.equal(choose({ state: ended('x://1') }, previous), none);
});

test('an id leads only to an instance of this container', () => {
  const status = { state: running, containerID: 'x://1', lastState: ended('x://0') };
  for (const id of ['x://0', 'x://1']) assert.equal(choose(status, { which: 'id', id }), id);
  for (const id of ['x://2', ''])
    assert.equal(choose(status, { which: 'id', id }), `container "c" in pod "p" has no instance ${id}`);
});
