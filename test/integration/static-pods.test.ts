import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { busyboxImageName, networkName } from '../../src/containerd/index.ts';
import { eventually, isRunning, KubelingNode } from '../kubeling-node.ts';

const signal = new AbortController().signal;
const example = fileURLToPath(new URL('../../examples/web.yaml', import.meta.url));

/** A container script that runs until SIGTERM and then exits immediately. */
const stays = 'trap "exit 0" TERM; while true; do sleep 0.1; done';

function podOf(name: string, containers: Readonly<Record<string, object>>, spec: object = {}) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 2,
      containers: Object.entries(containers).map(([container, fields]) => containerOf(container, fields)),
      ...spec,
    },
  };
}

function containerOf(name: string, fields: object) {
  return { name, image: busyboxImageName, command: ['sh', '-c', stays], ...fields };
}

async function page(ip: string): Promise<string | undefined> {
  const response = await fetch(`http://${ip}/`).catch(() => undefined);
  return await response?.text();
}

describe('static pods on a kubeling node', { timeout: 180_000 }, () => {
  let node: KubelingNode;

  before(async () => {
    node = await KubelingNode.open();
  });

  after(async () => {
    assert.deepEqual(await node.leave(), []);
  });

  const cgroup = (controller: string, ...parts: readonly string[]) =>
    join('/sys/fs/cgroup', controller, networkName(node.dataDir), 'kubepods', ...parts);
  const idsOf = async (name: string) => (await node.containersOf(name)).map(({ id }) => id).toSorted();

  /** Every sandbox, container, file and cgroup that a pod has left on the machine. */
  async function tracesOf(name: string, uid: string): Promise<readonly string[]> {
    const { items } = await node.cri.listPodSandbox({}, signal);
    const sandboxes = items.filter(({ metadata }) => metadata?.uid === uid).map(({ id }) => `sandbox ${id}`);
    const paths = [join(node.dataDir, 'kubelet', 'pods'), join(node.dataDir, 'logs')];
    const found = await Promise.all(
      paths.map((place) => readdir(place, { recursive: true }).catch(() => [])),
    );
    const cgroups = ['cpu', 'memory', 'pids'].flatMap((controller) =>
      ['', 'burstable', 'besteffort'].map((qos) => cgroup(controller, qos, `pod${uid}`)),
    );
    return [
      ...sandboxes,
      ...(await idsOf(name)).map((id) => `container ${id}`),
      ...found.flat().filter((path) => path.includes(uid) || path.includes(`${name}-`)),
      ...cgroups.filter((path) => existsSync(path)),
    ];
  }

  it('runs a pod whose manifest is put into the directory; the pod is reachable at its IP', async () => {
    await node.put('web.yaml', await readFile(example, 'utf8'));
    const { status } = await node.running('web');
    assert.equal(status.phase, 'Running');
    assert.equal(await eventually('an answer', () => page(status.podIP ?? '')), 'hello from kubeling\n');
    const story = await node.command('explain', 'web');
    for (const told of ['seen', 'admitted', 'cgroup', 'sandbox', 'Pulled', 'Created', 'Started'])
      assert.match(story, new RegExp(told), story);
  });

  it('replaces a pod when its manifest is edited', async () => {
    const old = await node.running('web');
    const text = (await readFile(example, 'utf8')).replace('hello from kubeling', 'edited');
    await node.put('web.yaml', text);
    const edited = await node.podIs(
      'web',
      'another and running',
      ({ containerStatuses = [] }, { metadata }) =>
        metadata.uid !== old.metadata.uid &&
        containerStatuses.length > 0 &&
        containerStatuses.every(isRunning),
    );
    assert.equal(await eventually('an answer', () => page(edited.status.podIP ?? '')), 'edited\n');
    await eventually('nothing to be left of the old pod', async () =>
      (await node.containersOf('web')).length === 1 ? true : undefined,
    );
  });

  it('keeps a pod running whose manifest became invalid, and reports the file and line', async () => {
    const before = await idsOf('web');
    const text = (await readFile(example, 'utf8')).replace('image: localhost', 'imag: localhost');
    await node.put('web.yaml', text);
    const line = text.split('\n').findIndex((each) => each.includes('imag:')) + 1;
    await eventually('the mistake to be reported', async () =>
      new RegExp(`web\\.yaml:${line}:\\d+: .*imag`).test(await node.command('explain', 'web'))
        ? true
        : undefined,
    );
    assert.deepEqual(await idsOf('web'), before);
    assert.ok(await node.running('web'));
    await node.put('web.yaml', await readFile(example, 'utf8'));
    await eventually('the mistake to be cleared', async () =>
      (await node.command('explain', 'web')).includes('manifest problem') ? undefined : true,
    );
    await eventually('the corrected pod to have replaced it', async () => {
      const ids = await idsOf('web');
      return ids.length === 1 && ids[0] !== before[0] ? true : undefined;
    });
    await node.running('web');
  });

  it('runs init containers sequentially before the main containers', async () => {
    const write = (text: string) => ['sh', '-c', `echo ${text} >> /shared/order`];
    const mounts = { volumeMounts: [{ name: 'shared', mountPath: '/shared' }] };
    await node.put(
      'pair.yaml',
      podOf(
        'pair',
        { one: mounts, two: mounts },
        {
          volumes: [{ name: 'shared', emptyDir: {} }],
          initContainers: [
            containerOf('first', { ...mounts, command: write('first') }),
            containerOf('second', { ...mounts, command: write('second') }),
          ],
        },
      ),
    );
    const { status, metadata } = await node.podIs(
      'pair',
      'running with both',
      ({ containerStatuses = [] }) => containerStatuses.length === 2 && containerStatuses.every(isRunning),
    );
    assert.deepEqual(
      status.initContainerStatuses?.map(({ name, state }) => [name, state?.terminated?.exitCode]),
      [
        ['first', 0],
        ['second', 0],
      ],
    );
    const volume = join('kubelet', 'pods', metadata.uid, 'volumes', 'kubernetes.io~empty-dir', 'shared');
    assert.equal(await readFile(join(node.dataDir, volume, 'order'), 'utf8'), 'first\nsecond\n');
  });

  it('restarts an exited container immediately, then with a back-off', async () => {
    await node.put('crash.yaml', podOf('crash', { main: { command: ['sh', '-c', 'exit 3'] } }));
    const { status } = await node.podIs(
      'crash',
      'waiting for the restart',
      ({ containerStatuses = [] }) =>
        containerStatuses[0]?.restartCount === 1 &&
        containerStatuses[0].state?.waiting?.reason === 'CrashLoopBackOff',
    );
    assert.equal(status.containerStatuses?.[0]?.lastState?.terminated?.exitCode, 3);
    assert.equal(status.phase, 'Running');
  });

  it("sets the cgroup values of each pod's QoS class", async () => {
    const both = { cpu: '100m', memory: '32Mi' };
    const resources = {
      guaranteed: { requests: both, limits: both },
      burstable: { requests: { cpu: '50m', memory: '16Mi' }, limits: { memory: '64Mi' } },
      besteffort: {},
    };
    const names = Object.keys(resources);
    for (const [name, each] of Object.entries(resources))
      await node.put(`${name}.yaml`, podOf(name, { main: { resources: each } }));
    const read = async (controller: string, file: string, ...parts: readonly string[]) =>
      (await readFile(join(cgroup(controller, ...parts), file), 'utf8')).trim();
    const values: Record<string, readonly string[]> = {};
    for (const name of names) {
      const { metadata } = await node.running(name);
      const parts = [...(name === 'guaranteed' ? [] : [name]), `pod${metadata.uid}`];
      values[name] = [
        await read('cpu', 'cpu.shares', ...parts),
        await read('cpu', 'cpu.cfs_quota_us', ...parts),
        await read('memory', 'memory.limit_in_bytes', ...parts),
      ];
      const [id = ''] = await idsOf(name);
      assert.ok(
        existsSync(cgroup('memory', ...parts, id)),
        `the container of ${name} is in its pod's cgroup`,
      );
    }
    const unlimited = '9223372036854771712';
    assert.deepEqual(values, {
      guaranteed: ['102', '10000', String(32 << 20)],
      burstable: ['51', '-1', String(64 << 20)],
      besteffort: ['2', '-1', unlimited],
    });
    assert.equal(await read('cpu', 'cpu.shares', 'besteffort'), '2');
    for (const name of names) await node.take(`${name}.yaml`);
  });

  it('a restarted kubeling adopts the running pods after it was killed', async () => {
    const crashes = (await node.pod('crash'))?.status.containerStatuses?.[0]?.restartCount ?? 0;
    const before = [await idsOf('web'), await idsOf('pair')];
    await node.end('SIGKILL');
    await node.start();
    await node.running('web');
    const pair = await node.running('pair');
    assert.deepEqual([await idsOf('web'), await idsOf('pair')], before);
    assert.deepEqual(
      pair.status.containerStatuses?.map(({ restartCount }) => restartCount),
      [0, 0],
    );
    await node.podIs(
      'crash',
      'counted on',
      ({ containerStatuses = [] }) => (containerStatuses[0]?.restartCount ?? 0) >= crashes,
    );
  });

  it('pods keep running when the runtime is killed, and are synced again when it is back', async () => {
    const before = [await idsOf('web'), await idsOf('pair')];
    const { pid } = JSON.parse(await readFile(join(node.dataDir, 'containerd', 'containerd.pid'), 'utf8'));
    const said = node.out.length;
    process.kill(pid, 'SIGKILL');
    await eventually('the runtime to be reported down and back', async () =>
      /does not respond.*answers again/s.test(node.out.slice(said)) ? true : undefined,
    );
    assert.equal(await page((await node.running('web')).status.podIP ?? ''), 'hello from kubeling\n');
    await node.put('late.yaml', podOf('late', { main: {} }));
    await node.running('late');
    assert.deepEqual([await idsOf('web'), await idsOf('pair')], before);
  });

  it('removes everything of a pod within its grace period when its manifest is removed', async () => {
    const names = ['web', 'pair', 'crash', 'late'];
    const uids = await Promise.all(
      names.map(async (name) => (await node.pod(name))?.metadata.uid ?? 'unknown'),
    );
    await Promise.all(names.map((name) => node.take(`${name}.yaml`)));
    const traces = async () =>
      (await Promise.all(names.map((name, index) => tracesOf(name, uids[index] ?? '')))).flat();
    let last: readonly string[] = [];
    await eventually(
      'nothing to be left of the pods',
      async () => {
        last = await traces();
        return last.length === 0 ? true : undefined;
      },
      120_000,
      () => last.join('\n'),
    );
    const story = await node.command('explain', 'web');
    assert.match(story, /removed +ok +nothing of it is left/);
    assert.deepEqual(JSON.parse(await node.get('/pods')).items ?? [], []);
  });
});
