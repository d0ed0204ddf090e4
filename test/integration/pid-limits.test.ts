import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { networkName } from '../../src/containerd/index.ts';
import { detectCgroupLayout, realCgroupHost } from '../../src/lib/index.ts';
import { eventually, KubelingNode } from '../kubeling-node.ts';

const run = promisify(execFile);
const image = 'localhost/kubeling/busybox:1';
/** Each process forks until the kernel refuses; the processes created so far sleep. */
const forkBomb = 'f() { f & f & while :; do sleep 1000 & done; }; f 2>/dev/null & exec sleep 1000';
const layout = await detectCgroupLayout(realCgroupHost());
const pidsTree = layout.version === 2 ? layout.root : layout.controllers.get('pids');
const skip =
  process.getuid?.() !== 0 ? 'needs root' : pidsTree === undefined ? 'needs the pids controller' : false;

function aPod(name: string, script: string) {
  const containers = [{ name: 'main', image, command: ['sh', '-c', script] }];
  const spec = { terminationGracePeriodSeconds: 0, containers };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, spec };
}

describe('PID limits of kubeling up', { timeout: 240_000, skip }, () => {
  let node: KubelingNode;
  let kubepods: string;

  before(async () => {
    node = await KubelingNode.open(undefined, ['--local-api=false']);
    kubepods = `${pidsTree}/${networkName(node.dataDir)}/kubepods`;
  });

  after(async () => {
    assert.deepEqual(await node?.leave(), []);
  });

  const numberIn = async (file: string) => Number((await readFile(file, 'utf8')).trim());
  const capacity = async () =>
    Math.min(
      ...(await Promise.all(['pid_max', 'threads-max'].map((name) => numberIn(`/proc/sys/kernel/${name}`)))),
    );

  async function limitOf(pod: string): Promise<number> {
    const { metadata } = await node.running(pod);
    return await numberIn(`${kubepods}/besteffort/pod${metadata.uid}/pids.max`);
  }

  it('kubeling up reserves PIDs for the node and limits the PIDs of each pod', async () => {
    await node.put('quiet.json', aPod('quiet', 'exec sleep 1000'));
    const perPod = await limitOf('quiet');
    const all = await capacity();
    const forPods = await numberIn(`${kubepods}/pids.max`);
    assert.ok(forPods <= all - Math.min(1_024, all / 2), `${forPods} of ${all}`);
    assert.ok(perPod <= Math.min(4_096, forPods / 4), `${perPod} of ${forPods}`);
  });

  it('the node can still start processes and pods while a fork bomb runs in a pod', async () => {
    // Without a PID limit the fork bomb would affect the whole machine.
    const most = await limitOf('quiet');
    assert.ok(most <= 4_096);
    await node.put('bomb.json', aPod('bomb', forkBomb));
    const { metadata } = await node.running('bomb');
    const cgroup = `${kubepods}/besteffort/pod${metadata.uid}`;
    await eventually('the fork bomb to reach its limit', async () =>
      (await numberIn(`${cgroup}/pids.current`)) > most * 0.9 ? true : undefined,
    );
    await run(process.execPath, ['--eval', '']);
    await node.put('next.json', aPod('next', 'sleep 1; exec sleep 1000'));
    await node.running('next');
    assert.ok((await numberIn(`${cgroup}/pids.current`)) <= most);
    await node.take('bomb.json');
    await node.until(
      'the pod with the fork bomb to be deleted',
      async () => (await node.pod('bomb')) === undefined,
    );
  });
});

describe('--pod-max-pids of kubeling up', { timeout: 240_000, skip }, () => {
  it('sets the PID limit of each pod', async () => {
    await using node = await KubelingNode.open(undefined, ['--local-api=false', '--pod-max-pids=99']);
    await node.put('one.json', aPod('one', 'exec sleep 1000'));
    const { metadata } = await node.running('one');
    const cgroup = `${pidsTree}/${networkName(node.dataDir)}/kubepods/besteffort/pod${metadata.uid}`;
    assert.equal((await readFile(`${cgroup}/pids.max`, 'utf8')).trim(), '99');
  });
});
