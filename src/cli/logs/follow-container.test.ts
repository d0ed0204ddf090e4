import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContainerStatus, PodSpec } from '../../kinds/index.ts';
import { type Pod, podUid } from '../../pods/index.ts';
import { nextInstance, type Progress } from './follow-container.ts';

const runs = (id: string) => ({ containerID: id, state: { running: {} } });
const ended = (id: string, exitCode = 1) => ({ terminated: { exitCode, containerID: id } });

function next(
  status: Partial<ContainerStatus>,
  progress: Progress,
  spec: Partial<PodSpec> = {},
  phase = 'Running',
) {
  const main = { name: 'c', ready: true, restartCount: 0, image: '', imageID: '', ...status };
  const pod: Pod = {
    metadata: { name: 'p', namespace: 'ns', uid: podUid('u') },
    spec: { containers: [{ name: 'c' }], ...spec },
    status: { phase, containerStatuses: [main] },
  };
  const response = nextInstance(pod, 'c', progress);
  return response.kind === 'read' ? response.id : response.kind;
}

const begun: Progress = { kind: 'begun' };
const inside = (id: string): Progress => ({ kind: 'inside', id });
const behind = (id: string): Progress => ({ kind: 'behind', id });

test('starts to follow at the newest instance of the container', () => {
  assert.equal(next({ ...runs('1'), lastState: ended('0') }, begun), '1');
  assert.equal(next({ state: { waiting: {} }, lastState: ended('0') }, begun), '0');
  assert.equal(next({ state: { waiting: {} } }, begun), 'wait');
});

test('resumes reading the log of an instance after an interruption, as long as the log exists', () => {
  assert.equal(next({ ...runs('1'), lastState: ended('0') }, inside('0')), '0');
  assert.equal(next({ ...runs('1'), lastState: ended('0') }, inside('1')), '1');
  assert.equal(next({ ...runs('3'), lastState: ended('2') }, inside('0')), '2');
});

test('continues with the next instance and skips none', () => {
  assert.equal(next({ ...runs('1'), lastState: ended('0') }, behind('0')), '1');
  assert.equal(next({ state: ended('1'), lastState: ended('0') }, behind('0')), '1');
  assert.equal(next({ ...runs('2'), lastState: ended('1') }, behind('0')), '1');
  assert.equal(next({ state: { waiting: {} }, lastState: ended('0') }, behind('0')), 'wait');
});

test('checks again if a stale status shows an exited instance as running', () => {
  assert.equal(next(runs('0'), behind('0')), 'doubt');
});

test('stops following when no further instance can start', () => {
  assert.equal(next({ state: ended('0') }, behind('0')), 'wait');
  assert.equal(next({ state: ended('0') }, behind('0'), { restartPolicy: 'Never' }), 'over');
  assert.equal(next({ state: ended('0', 0) }, behind('0'), { restartPolicy: 'OnFailure' }), 'over');
  assert.equal(next({ state: ended('0') }, behind('0'), { restartPolicy: 'OnFailure' }), 'wait');
  assert.equal(next(runs('0'), behind('0'), {}, 'Failed'), 'over');
  assert.equal(next({ state: { waiting: {} }, lastState: ended('0') }, behind('0'), {}, 'Failed'), 'over');
});

test('stops following a completed init container', () => {
  const spec = { containers: [], initContainers: [{ name: 'c' }] };
  assert.equal(next({ state: ended('0', 0) }, behind('0'), spec), 'over');
  assert.equal(next({ state: ended('0', 1) }, behind('0'), spec), 'wait');
  assert.equal(
    next({ state: ended('0', 0) }, behind('0'), {
      ...spec,
      initContainers: [{ name: 'c', restartPolicy: 'Always' }],
    }),
    'wait',
  );
});
