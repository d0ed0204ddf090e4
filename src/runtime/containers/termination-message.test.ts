import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mapFileStore, memoryRuntimeFiles } from '../../../test/fakes/memory-runtime-files.ts';
import { ContainerStatus } from '../../cri/index.ts';
import { terminationMessage, terminationMessageFile } from './termination-message.ts';

async function messageOf(...args: Parameters<typeof terminationMessage>): Promise<string> {
  return (await terminationMessage(...args)).text;
}

const labels = {
  'io.kubernetes.pod.uid': 'uid-1',
  'io.kubernetes.pod.name': 'web',
  'io.kubernetes.pod.namespace': 'ns',
  'io.kubernetes.container.name': 'main',
};
const podLogsDir = '/logs';

function statusOf(hostPath: string, path = '/dev/termination-log'): ContainerStatus {
  return ContainerStatus.create({
    labels,
    annotations: { 'io.kubernetes.container.terminationMessagePath': path },
    mounts: [
      { containerPath: '/data', hostPath: '/host/data' },
      { containerPath: '/dev/termination-log', hostPath },
    ],
  });
}

const ours = '/var/lib/kubelet/pods/uid-1/containers/main/0123abcd';

test('recognizes the termination message file by its path', () => {
  assert.equal(terminationMessageFile(statusOf(ours)), ours);
});

for (const path of [
  '/home/user/notes',
  '/var/lib/kubelet/pods/uid-2/containers/main/0123abcd',
  '/var/lib/kubelet/pods/uid-1/containers/other/0123abcd',
  '/var/lib/kubelet/pods/uid-1/containers/main/notes',
  '/var/lib/kubelet/pods/uid-1/volumes/main/0123abcd',
]) {
  test(`${path} is not the termination message file of the container`, () => {
    assert.equal(terminationMessageFile(statusOf(path)), undefined);
  });
}

test('a container without terminationMessagePath has no termination message file', () => {
  assert.equal(terminationMessageFile(statusOf(ours, '')), undefined);
});

test('resolves a relative terminationMessagePath from the root', async () => {
  const store = mapFileStore();
  store.write(ours, 'because');
  const status = { ...statusOf(ours, 'dev/termination-log'), message: 'failed' };
  assert.equal(await messageOf(status, { files: memoryRuntimeFiles(store), podLogsDir }), 'failed: because');
});

test("does not read the file of a volume that is mounted over the kubelet's termination message file", async () => {
  const store = mapFileStore();
  store.write('/host/chosen-by-the-pod', 'secret');
  store.write(ours, 'because');
  const status = statusOf(ours);
  const below = { ...status.mounts[1], hostPath: '/host/chosen-by-the-pod' };
  const mounts = ContainerStatus.create({ mounts: [below, ...status.mounts] }).mounts;
  assert.equal(
    await messageOf({ ...status, mounts }, { files: memoryRuntimeFiles(store), podLogsDir }),
    'because',
  );
});

test('does not read a host file that is mounted at the termination message path', async () => {
  const store = mapFileStore();
  store.write('/host/chosen-by-the-pod', 'secret');
  const source = { files: memoryRuntimeFiles(store), podLogsDir };
  assert.equal(await messageOf(statusOf('/host/chosen-by-the-pod'), source), '');
});

const logPath = '/logs/ns_web_uid-1/main/0.log';
const lines = Array.from({ length: 100 }, (_, at) => `2026-01-01T00:00:00Z stdout F ${at}\n`).join('');

async function fromLog(status: Partial<ContainerStatus>, log = lines): Promise<string> {
  const store = mapFileStore();
  store.write(logPath, log);
  const annotations = {
    'io.kubernetes.container.terminationMessagePath': '/dev/termination-log',
    'io.kubernetes.container.terminationMessagePolicy': 'FallbackToLogsOnError',
  };
  const whole = { ...statusOf(ours), annotations, logPath, exitCode: 1, ...status };
  return await messageOf(whole, { files: memoryRuntimeFiles(store), podLogsDir });
}

test("FallbackToLogsOnError uses the last 80 lines of a failed container's log", async () => {
  const message = await fromLog({});
  assert.deepEqual([message.split('\n').length - 1, message.slice(0, 3)], [80, '20\n']);
});

for (const [what, status] of [
  ['ended well', { exitCode: 0 }],
  ['could not start', { exitCode: 128, reason: 'ContainerCannotRun' }],
] as const) {
  test(`the termination message does not fall back to the log of a container that ${what}`, async () => {
    assert.equal(await fromLog(status), '');
  });
}

test('limits the termination message from the log to 2048 bytes, with partial lines joined', async () => {
  const line = (tag: string, text: string) => `2026-01-01T00:00:00Z stderr ${tag} ${text}\n`;
  const message = await fromLog({}, `${line('P', 'x'.repeat(5_000))}${line('F', 'y')}${line('F', 'end')}`);
  assert.equal(message, `${'x'.repeat(2_048 - 6)}y\nend\n`);
});

test('uses the log for the termination message even when the last line of the log is longer than the first read', async () => {
  const message = await fromLog({}, `2026-01-01T00:00:00Z stdout F ${'z'.repeat(200_000)}\n`);
  assert.equal(message, `${'z'.repeat(2_047)}\n`);
});

test('a log that is missing, empty or without lines gives no termination message', async () => {
  for (const log of ['', 'no log at all\n', '\n']) assert.equal(await fromLog({}, log), '');
  assert.equal(await fromLog({ logPath: '/logs/ns_web_uid-1/main/none.log' }), '');
});

test('the termination message file overrides the log and is limited to 4096 bytes', async () => {
  const store = mapFileStore();
  store.write(ours, `${'a'.repeat(5_000)}b`);
  const message = await messageOf(statusOf(ours), { files: memoryRuntimeFiles(store), podLogsDir });
  assert.equal(message, `${'a'.repeat(4_095)}b`);
});

test("rejects a log outside of the pod's log directory", async () => {
  for (const path of [
    '/etc/shadow',
    '/logs/ns_other_uid-2/main/0.log',
    '/logs/ns_web_uid-1/../../etc/shadow',
  ])
    assert.match(
      await fromLog({ logPath: path }),
      /^Error on reading termination message from logs: .*outside of the log directory of this pod/,
    );
});

test('does not follow a symlink in place of the termination message file or the log', async () => {
  const store = mapFileStore();
  store.write('/host/secret', '2026-01-01T00:00:00Z stdout F secret\n');
  const files = memoryRuntimeFiles(store);
  await files.link('/host/secret', ours);
  assert.match(await messageOf(statusOf(ours), { files, podLogsDir }), /^Error on reading .*a link$/);
  await files.remove(ours);
  await files.link('/host/secret', logPath);
  const annotations = { 'io.kubernetes.container.terminationMessagePolicy': 'FallbackToLogsOnError' };
  const status = { ...statusOf(ours), annotations, logPath, exitCode: 1 };
  assert.match(await messageOf(status, { files, podLogsDir }), /^Error on reading .*Cannot read the log/);
});
