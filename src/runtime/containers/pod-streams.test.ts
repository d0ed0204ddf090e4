import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Pod, podUid, type RuntimePod } from '../../pods/index.ts';
import { PodStreams, type PodStreamsDeps } from './pod-streams.ts';

const signal = new AbortController().signal;
const streams = { stdin: false, stdout: true, stderr: true, tty: false };
const pod = {
  metadata: { name: 'web', namespace: 'default', uid: podUid('u1') },
  spec: { containers: [] },
  status: {},
} as Pod;

function item(id: string, state: 'running' | 'exited', createdAtNs: bigint) {
  return { id, state, createdAtNs, name: 'main', sandboxId: 's', image: 'i' };
}

function createHarness(listed: Partial<RuntimePod> | undefined, exitCode = 0) {
  const requests: object[] = [];
  const answer = async (request: object) => {
    requests.push(request);
    return { url: 'http://runtime/once' };
  };
  const execSync = async () => ({ exitCode, stdout: Buffer.from('out '), stderr: Buffer.from('err') });
  const cri = {
    exec: answer,
    attach: answer,
    portForward: answer,
    execSync,
  } as unknown as PodStreamsDeps['cri'];
  const listPod = async () => listed as RuntimePod | undefined;
  return { asked: requests, pods: new PodStreams({ cri, observer: { listPod } }) };
}

test('exec and attach use the newest running instance of the container', async () => {
  const containers = [item('old', 'running', 1n), item('new', 'running', 2n), item('dead', 'exited', 3n)];
  const { asked, pods } = createHarness({ containers });
  assert.equal(await pods.exec(pod, 'main', ['id'], streams, signal), 'http://runtime/once');
  await pods.attach(pod, 'main', streams, signal);
  assert.deepEqual(asked, [
    { containerId: 'new', cmd: ['id'], ...streams },
    { containerId: 'new', ...streams },
  ]);
});

test('exec, attach and port-forward reject containers and pods that are not running', async () => {
  const { pods } = createHarness({
    containers: [item('dead', 'exited', 1n)],
    sandboxes: [item('s', 'exited', 1n)],
  });
  await assert.rejects(pods.exec(pod, 'main', ['id'], streams, signal), {
    message: 'container not found ("main")',
  });
  await assert.rejects(pods.attach(pod, 'other', streams, signal), {
    message: 'container not found ("other")',
  });
  await assert.rejects(pods.portForward(pod, [], signal), { message: 'pod not found ("web_default")' });
  await assert.rejects(createHarness(undefined).pods.portForward(pod, [], signal), { code: 'STREAM_NO_POD' });
});

test('port-forward uses the running sandbox of the pod', async () => {
  const { asked, pods } = createHarness({
    sandboxes: [item('old', 'exited', 1n), item('now', 'running', 2n)],
  });
  await pods.portForward(pod, [80], signal);
  assert.deepEqual(asked, [{ podSandboxId: 'now', port: [80] }]);
});

test('run returns the output of a command, or fails with its exit code and output', async () => {
  const containers = [item('c', 'running', 1n)];
  assert.equal(
    String(await createHarness({ containers }).pods.run(pod, 'main', ['ls', '-l'], signal)),
    'out err',
  );
  await assert.rejects(createHarness({ containers }, 2).pods.run(pod, 'main', ['ls', '-l'], signal), {
    message: "command 'ls -l' exited with 2: err",
  });
});
