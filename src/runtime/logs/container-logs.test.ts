import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryLogFiles } from '../../../test/fakes/memory-log-files.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { ContainerStatus as CriContainerStatus } from '../../cri/index.ts';
import type { ContainerState, ContainerStatus } from '../../kinds/index.ts';
import { cancelledError, type ErrorCode, KubelingError } from '../../lib/index.ts';
import { type Pod, podUid } from '../../pods/index.ts';
import {
  type ContainerLogRequest,
  ContainerLogs,
  type LogInstanceSelector,
  selectLogInstance,
} from './container-logs.ts';

const path = '/logs/ns_p_u/c/0.log';
const pod: Pod = {
  metadata: { name: 'p', namespace: 'ns', uid: podUid('u') },
  spec: { containers: [{ name: 'c' }] },
  status: {
    containerStatuses: [
      {
        name: 'c',
        ready: true,
        restartCount: 0,
        image: '',
        imageID: '',
        containerID: 'x://id',
        state: { running: {} },
      },
    ],
  },
};
const labels = {
  'io.kubernetes.pod.uid': 'u',
  'io.kubernetes.container.name': 'c',
  'io.kubernetes.pod.name': 'p',
  'io.kubernetes.pod.namespace': 'ns',
};
const running = CriContainerStatus.create({ id: 'id', state: 'CONTAINER_RUNNING', logPath: path, labels });

class Rig {
  readonly clock = new VirtualClock();
  readonly files = new MemoryLogFiles();
  readonly controller = new AbortController();
  readonly asked: string[] = [];
  answer: CriContainerStatus | KubelingError = running;
  readonly logs = new ContainerLogs({
    clock: this.clock,
    files: this.files,
    podLogsDir: '/logs',
    cri: {
      containerStatus: async ({ containerId = '' }) => {
        this.asked.push(containerId);
        if (this.answer instanceof KubelingError) throw this.answer;
        return { status: this.answer, info: {} };
      },
    },
  });

  open(request: Partial<ContainerLogRequest> = {}) {
    const instance = { which: 'newest' } as const;
    return this.logs.open(
      { pod, container: 'c', instance, view: {}, follow: 'no', ...request },
      this.controller.signal,
    );
  }

  async refusal(request: Partial<ContainerLogRequest> = {}): Promise<string> {
    const opened = await this.open(request);
    return opened.kind === 'refused' ? opened.message : 'not refused';
  }

  /** Reads the given number of chunks and returns the state of the log stream. */
  async follow() {
    const opened = await this.open({ follow: 'until-ended' });
    assert.ok(opened.kind === 'open');
    const state = { out: '', end: 'open' as unknown };
    const consume = async () => {
      for await (const chunk of opened.chunks) state.out += String(Buffer.from(chunk));
    };
    void consume().then(
      () => {
        state.end = 'ended';
      },
      (error: unknown) => {
        state.end = error;
      },
    );
    await this.clock.advance(0);
    return state;
  }
}

test('the log path is the one that the runtime reports in the container status', async () => {
  const harness = new Rig();
  harness.files.append(path, '2026-01-01T00:00:00Z stdout F hello\n');
  const opened = await harness.open();
  assert.ok(opened.kind === 'open');
  const chunks: Uint8Array[] = [];
  for await (const chunk of opened.chunks) chunks.push(chunk);
  assert.deepEqual(
    [String(Buffer.concat(chunks)), harness.asked, harness.files.handles],
    ['hello\n', ['id'], 0],
  );
});

const oddPaths: readonly (readonly [string, Partial<CriContainerStatus>, RegExp])[] = [
  ["outside the pod's directory", { logPath: '/logs/ns_p_u/../other/0.log' }, /is not in \/logs\/ns_p_u/],
  ['of another pod', { labels: { ...labels, 'io.kubernetes.pod.uid': 'v' } }, /another container/],
  [
    'of another container',
    { labels: { ...labels, 'io.kubernetes.container.name': 'd' } },
    /another container/,
  ],
  ['nowhere', { logPath: '' }, /has no log/],
  ['missing', {}, /does not exist/],
];
for (const [what, status, message] of oddPaths) {
  test(`rejects a log that is ${what}`, async () => {
    const harness = new Rig();
    harness.answer = { ...running, ...status };
    assert.match(await harness.refusal(), message);
  });
}

test('rejects a log path that is not a log file, with the reason', async () => {
  const harness = new Rig();
  harness.files.refuse(path);
  assert.match(await harness.refusal(), /Cannot read the log/);
});

test('a container that the runtime does not report has no log', async () => {
  const harness = new Rig();
  harness.answer = new KubelingError('CRI_NOT_FOUND', 'gone');
  assert.equal(await harness.refusal(), 'unable to retrieve container logs for x://id');
});

for (const [code, end] of [
  ['CRI_UNAVAILABLE', 'open'],
  ['CRI_DEADLINE', 'open'],
  ['CRI_NOT_FOUND', 'ended'],
] as const satisfies readonly (readonly [ErrorCode, string])[]) {
  test(`a followed log is ${end} after the runtime has failed with ${code}`, async () => {
    const harness = new Rig();
    harness.files.append(path, '2026-01-01T00:00:00Z stdout F hello\n');
    const state = await harness.follow();
    harness.answer = new KubelingError(code, 'no');
    await harness.clock.advance(5_000);
    assert.deepEqual(state, { out: 'hello\n', end });
    harness.controller.abort(cancelledError('enough'));
  });
}

test('a log stream that is opened and never read is closed when its signal is aborted', async () => {
  const harness = new Rig();
  harness.files.append(path, '');
  await harness.open({ follow: 'until-ended' });
  assert.equal(harness.files.handles, 1);
  harness.controller.abort(cancelledError('gone'));
  await harness.clock.advance(0);
  assert.deepEqual([harness.files.handles, harness.files.watchers, harness.clock.pendingTimers], [0, 0, 0]);
});

test('aborting a follower of a log ends the stream and closes all files', async () => {
  const harness = new Rig();
  harness.files.append(path, '');
  const state = await harness.follow();
  harness.controller.abort(cancelledError('gone'));
  await harness.clock.advance(0);
  assert.equal(state.end, harness.controller.signal.reason);
  assert.deepEqual([harness.files.handles, harness.files.watchers, harness.clock.pendingTimers], [0, 0, 0]);
});

const runningState: ContainerState = { running: {} };
const ended = (containerID: string): ContainerState => ({ terminated: { exitCode: 1, containerID } });
const waiting = (reason: string): ContainerState => ({ waiting: { reason } });

function choose(
  status: Partial<ContainerStatus> | undefined,
  expected: LogInstanceSelector = { which: 'newest' },
) {
  const whole = { name: 'c', ready: false, restartCount: 0, image: '', imageID: '', ...status };
  const chosen = selectLogInstance(
    'p',
    status === undefined ? {} : { containerStatuses: [whole] },
    'c',
    expected,
  );
  return chosen.kind === 'found' ? chosen.containerId : chosen.message;
}

const rows: readonly (readonly [string, Partial<ContainerStatus> | undefined, string])[] = [
  ['a running container', { state: runningState, containerID: 'x://1', lastState: ended('x://0') }, 'x://1'],
  ['an exited container', { state: ended('x://1'), lastState: ended('x://0') }, 'x://1'],
  [
    'an exited container whose replacement failed to start',
    { state: ended(''), lastState: ended('x://0') },
    'x://0',
  ],
  [
    'a container waiting for its restart',
    { state: waiting('CrashLoopBackOff'), lastState: ended('x://0') },
    'x://0',
  ],
  [
    'a terminated container without an instance',
    { state: ended('') },
    'container "c" in pod "p" is terminated',
  ],
  ['an unknown container', undefined, 'container "c" in pod "p" is not available'],
  ['a container without a state', {}, 'container "c" in pod "p" is waiting to start - no logs yet'],
  [
    'a container being created',
    { state: waiting('ContainerCreating') },
    'container "c" in pod "p" is waiting to start: ContainerCreating',
  ],
  [
    'a container whose image pull failed',
    { state: waiting('ErrImagePull') },
    'container "c" in pod "p" is waiting to start: image can\'t be pulled',
  ],
  [
    'a container in image pull back-off',
    { state: waiting('ImagePullBackOff') },
    'container "c" in pod "p" is waiting to start: trying and failing to pull image',
  ],
];

for (const [what, status, response] of rows) {
  test(`selects the log by status: ${what} gives ${response}`, () => assert.equal(choose(status), response));
}

test('`previous` selects the log of the last terminated instance', () => {
  const previous = { which: 'previous' } as const;
  assert.equal(
    choose({ state: runningState, containerID: 'x://1', lastState: ended('x://0') }, previous),
    'x://0',
  );
  const none = 'previous terminated container "c" in pod "p" not found';
  assert.equal(choose({ state: runningState, containerID: 'x://1' }, previous), none);
  assert.equal(choose({ state: ended('x://1') }, previous), none);
});

test('a container ID selects only a log of an instance of this container', () => {
  const status = { state: runningState, containerID: 'x://1', lastState: ended('x://0') };
  for (const id of ['x://0', 'x://1']) assert.equal(choose(status, { which: 'id', id }), id);
  for (const id of ['x://2', ''])
    assert.equal(choose(status, { which: 'id', id }), `container "c" in pod "p" has no instance ${id}`);
});
