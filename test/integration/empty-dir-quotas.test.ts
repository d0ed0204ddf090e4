import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { KubeletDeps } from '../../src/kubelet/index.ts';
import { parseMountinfo, realClock } from '../../src/lib/index.ts';
import { HostDirectoryQuotas } from '../../src/volumes/index.ts';
import { quotaTools } from '../disks/quota-tools.ts';
import { InProcessNode } from '../in-process-node.ts';
import type { PrivateRuntime } from '../private-runtime.ts';

const skip = process.getuid?.() === 0 ? false : 'needs root';
const pods = {
  held: {
    spec: {
      restartPolicy: 'Always',
      volumes: [
        { name: 'small', emptyDir: { sizeLimit: '1Mi' } },
        { name: 'any', emptyDir: {} },
      ],
    },
    containers: {
      main: {
        script: 'trap "exit 0" TERM; while true; do sleep 0.1; done',
        volumeMounts: [
          { name: 'small', mountPath: '/small' },
          { name: 'any', mountPath: '/any' },
        ],
      },
    },
  },
} as const;
const isRunning = ({ phase }: { readonly phase?: string | undefined }) => phase === 'Running';

/** Adds directory quotas with fake quota programs, because few kernels support project quotas. */
function withQuotas(deps: KubeletDeps, { dataDir }: PrivateRuntime): KubeletDeps {
  const path = quotaTools(join(dataDir, 'tools'));
  const mounts = async () => parseMountinfo(`1 0 8:1 / ${dataDir} rw - ext4 /dev/vda rw,prjquota`);
  const directoryQuotas = new HostDirectoryQuotas({ clock: realClock(), path, mounts });
  return { ...deps, machine: { ...deps.machine, directoryQuotas } };
}

test('limits an emptyDir to its sizeLimit until it is removed, across restarts of the kubelet', {
  skip,
  timeout: 240_000,
}, async () => {
  await using node = await InProcessNode.open({ flags: ['--empty-dir-quota'], aroundDeps: withQuotas });
  const limits = () =>
    readdirSync(node.path('tools/limits')).map((id) => [
      id,
      readFileSync(node.path('tools/limits', id), 'utf8'),
    ]);
  await node.put(pods);
  await node.podIs('held', 'running', isRunning);
  const held = limits();
  assert.deepEqual(
    held.map(([, text]) => text),
    [`1024 ${node.path()}\n`],
  );
  await node.stop();
  await node.start();
  await node.podIs('held', 'running', isRunning);
  assert.deepEqual(limits(), held);
  // A kubelet without quotas releases the limit as well.
  await node.stop();
  await node.start({ emptyDirQuota: 'off' });
  await node.podIs('held', 'running', isRunning);
  await node.clear();
  assert.deepEqual(limits(), []);
});

test('runs a pod without a quota where quotas are unavailable, and reports this once on the node', {
  skip,
  timeout: 240_000,
}, async () => {
  await using node = await InProcessNode.open({
    flags: ['--empty-dir-quota'],
    aroundDeps: (deps, { dataDir }) => {
      // The directory exists as on a real node, where the CLI commands create it before a kubelet
      // runs.
      mkdirSync(join(dataDir, 'kubelet'), { recursive: true });
      const mounts = async () => parseMountinfo(`1 0 8:1 / ${dataDir} rw - ext4 /dev/vda rw`);
      const directoryQuotas = new HostDirectoryQuotas({ clock: realClock(), mounts });
      return { ...deps, machine: { ...deps.machine, directoryQuotas } };
    },
  });
  await node.put(pods);
  await node.podIs('held', 'running', isRunning);
  const reported = node.kubelet.state.node
    .story()
    .entries.filter((entry) => entry.is === 'event' && entry.reason === 'EmptyDirQuotaUnavailable');
  assert.deepEqual(
    reported.map((entry) => [entry.message, entry.is === 'event' && entry.count]),
    [
      [
        `emptyDir volumes are not held to their sizeLimit by the kernel: the file system at ${node.path()} (ext4) is not mounted with prjquota`,
        1,
      ],
    ],
  );
  await node.clear();
});
