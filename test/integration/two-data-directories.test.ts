import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { networkName } from '../../src/containerd/index.ts';
import { KubelingNode } from '../kubeling-node.ts';
import { openPrivateRuntime, type PrivateRuntime } from '../private-runtime.ts';

const signal = new AbortController().signal;

/** A container script that on SIGTERM writes a file after one second and then exits. */
const orderly = 'trap "sleep 1; echo in order > /out/end; exit 0" TERM; while true; do sleep 0.1; done';

function podOf(name: string, image: string, spec: object = {}, container: object = {}) {
  const containers = [{ name: 'main', image, command: ['sleep', '10000'], ...container }];
  const pod = { terminationGracePeriodSeconds: 0, containers, ...spec };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: pod };
}

describe('two data directories that share one containerd', { timeout: 400_000 }, () => {
  let shared: PrivateRuntime;
  let a: KubelingNode;
  let b: KubelingNode;
  let foreign = '';

  const idsOf = async (node: KubelingNode, name: string) =>
    (await node.containersOf(name)).map(({ id, state }) => `${id} ${state}`).toSorted();

  /** Runs a sandbox with the labels of another kubelet's pod. */
  async function runForeign(): Promise<string> {
    const labels = {
      'io.kubernetes.pod.name': 'foreign',
      'io.kubernetes.pod.namespace': 'kube-system',
      'io.kubernetes.pod.uid': 'foreign-uid',
    };
    const config = {
      metadata: { name: 'foreign', namespace: 'kube-system', uid: 'foreign-uid', attempt: 0 },
      labels,
      linux: { cgroupParent: shared.containerd.layout.cgroup },
    };
    return (await shared.cri.runPodSandbox({ config }, signal)).podSandboxId;
  }

  const isForeignReady = async () => {
    const { status } = await shared.cri.podSandboxStatus({ podSandboxId: foreign }, signal);
    return status?.state === 'SANDBOX_READY';
  };

  before(async () => {
    shared = await openPrivateRuntime();
    foreign = await runForeign();
    const flags = ['--runtime-endpoint', `unix://${shared.containerd.layout.socket}`];
    a = await KubelingNode.open(undefined, flags);
    b = await KubelingNode.open(undefined, flags);
  });

  after(async () => {
    try {
      assert.deepEqual([...((await a?.leave()) ?? []), ...((await b?.leave()) ?? [])], []);
    } finally {
      await shared?.[Symbol.asyncDispose]();
    }
  });

  it('both nodes report pods of other kubelets in the runtime and do not touch them', async () => {
    assert.match(a.out, /^runtime {5}also has 1 pods of other clients, which are left alone/m);
    await a.put('kept.json', podOf('kept-a', shared.image));
    await a.put('going.json', podOf('going-a', shared.image));
    await b.put('kept.json', podOf('kept-b', shared.image));
    await Promise.all([a.running('kept-a'), a.running('going-a'), b.running('kept-b')]);
    assert.ok(await isForeignReady());
  });

  it('each node stops its own orphaned pods and no pod of the other node', async () => {
    const before = [await idsOf(a, 'kept-a'), await idsOf(b, 'kept-b')];
    // The manifest is deleted while no kubelet runs, so the pod is orphaned when the kubelet
    // starts.
    await a.end('SIGKILL');
    await a.take('going.json');
    await a.start();
    assert.match(a.out, new RegExp(`^runtime {5}also has pods of the kubeling in ${b.dataDir}, which`, 'm'));
    await a.until(
      'the orphaned pod to be deleted',
      async () => (await a.containersOf('going-a')).length === 0,
    );
    await b.end('SIGTERM');
    await b.start();
    await b.running('kept-b');
    assert.deepEqual([await idsOf(a, 'kept-a'), await idsOf(b, 'kept-b')], before);
    assert.ok(await isForeignReady());
  });

  it('each node lists and counts only its own pods', async () => {
    assert.match(await a.command('status'), /^pods {7}1 running$/m);
    assert.match(await b.command('status'), /^pods {7}1 running$/m);
    assert.deepEqual(
      (await a.pods()).map(({ metadata }) => metadata.name.split('-').slice(0, 2).join('-')),
      ['kept-a'],
    );
  });

  it('each node has separate cgroups', async () => {
    // find is used because, unlike readdir, it continues when another test removes a cgroup during
    // the search.
    const roots = spawnSync('find', ['/sys/fs/cgroup/', '-type', 'd', '-name', 'kubepods'], {
      encoding: 'utf8',
    })
      .stdout.split('\n')
      .filter((path) => /\/klg[0-9a-f]{8}\/kubepods$/.test(path));
    for (const node of [a, b])
      assert.ok(
        roots.some((root) => root.endsWith(`${networkName(node.dataDir)}/kubepods`)),
        roots.join('\n'),
      );
  });

  it('kubeling down lets the containers of its own node terminate gracefully and removes only their pods', async () => {
    const volumes = [{ name: 'out', hostPath: { path: b.dataDir, type: 'Directory' } }];
    const container = {
      command: ['sh', '-c', orderly],
      volumeMounts: [{ name: 'out', mountPath: '/out' }],
    };
    await b.put(
      'orderly.json',
      podOf('orderly', shared.image, { terminationGracePeriodSeconds: 20, volumes }, container),
    );
    await b.running('orderly');
    const before = await idsOf(a, 'kept-a');
    const reported = await b.command('down');
    assert.match(reported, /^kubeling {3}stopped process \d+$/m);
    assert.match(reported, /^pods {7}stopped and removed 2$/m);
    assert.match(reported, /^removed {4}\d+ cgroups$/m);
    assert.equal(await readFile(join(b.dataDir, 'end'), 'utf8'), 'in order\n');
    assert.deepEqual(await idsOf(b, 'kept-b'), []);
    assert.deepEqual(await idsOf(a, 'kept-a'), before);
    assert.ok(await isForeignReady());
    const left = await readdir('/sys/fs/cgroup/', { recursive: true });
    assert.deepEqual(
      left.filter((path) => path.includes(networkName(b.dataDir))),
      [],
    );
  });

  it('the pods of manifests start again when kubeling starts after going down', async () => {
    await b.start();
    await Promise.all([b.running('kept-b'), b.running('orderly')]);
  });

  it('kubeling down also stops pods in a runtime that the node no longer uses', async () => {
    await b.end('SIGTERM');
    b.change({}, ['--runtime-endpoint', 'private']);
    await b.start();
    assert.match(b.out, /^runtime {5}pods of an earlier run may still run at unix:/m);
    const reported = await b.command('down', '--grace=0s');
    assert.match(reported, /^pods {7}stopped and removed 2$/m);
    assert.match(reported, /^containerd stopped$/m);
    assert.doesNotMatch(reported, /Cannot/);
    assert.deepEqual(await idsOf(b, 'kept-b'), []);
    assert.ok(await isForeignReady());
  });
});
