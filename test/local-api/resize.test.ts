import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { networkName } from '../../src/containerd/index.ts';
import type { Pod } from '../../src/kinds/index.ts';
import { realClock } from '../../src/lib/index.ts';
import { ApiCaller } from '../chaos/api-caller.ts';
import { eventually } from '../kubeling-node.ts';
import { LocalCluster } from './local-cluster.ts';
import { withoutKubectl } from './tour-commands.ts';

const clock = realClock();
const mebibyte = 2 ** 20;

interface Amounts {
  readonly cpu: string;
  readonly memory: string;
}

/** A container whose requests equal its limits. */
function container(name: string, amounts: Amounts, over: object = {}): object {
  return {
    name,
    image: 'localhost/kubeling/busybox:1',
    command: ['sh', '-c', 'trap exit TERM; while :; do sleep 1; done'],
    resources: { requests: amounts, limits: amounts },
    ...over,
  };
}

function podOf(name: string, ...containers: readonly object[]): object {
  const metadata = { name };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { terminationGracePeriodSeconds: 0, containers } };
}

/**
 * The tests use the real kubectl and the real containerd, and compare the kernel values with the
 * spec.
 */
describe('in-place resize of pods on kubeling up', { timeout: 900_000, skip: withoutKubectl() }, () => {
  let cluster: LocalCluster;

  before(async () => {
    cluster = await LocalCluster.open();
  });

  after(async () => {
    await cluster?.kubectl('delete', 'pod', '--all', '--wait=true', '--timeout=60s');
    assert.deepEqual(await cluster?.leave(), []);
  });

  const get = async (name: string): Promise<Pod> =>
    JSON.parse(await cluster.kubectl('get', 'pod', name, '-o', 'json')) as Pod;
  const patched = (containers: readonly object[]) => JSON.stringify({ spec: { containers } });
  const amounts = (name: string, both: Amounts) => ({ name, resources: { requests: both, limits: both } });
  const resize = (name: string, ...containers: readonly object[]) =>
    cluster.kubectl('patch', 'pod', name, '--subresource=resize', '-p', patched(containers));
  const conditionsOf = ({ status }: Pod) =>
    (status?.conditions ?? []).filter(({ type }) => type.startsWith('PodResize'));

  const settled = async (name: string): Promise<Pod> =>
    await eventually(`the resize of ${name} to be complete`, async () => {
      const pod = await get(name);
      const isSeen = pod.status?.observedGeneration === pod.metadata?.generation;
      return isSeen && conditionsOf(pod).length === 0 ? pod : undefined;
    });

  /** The cgroup directory of a pod below the given controller. */
  const podDirectory = (controller: string, uid: string): string => {
    // Searches only the cgroups of this node, because those of other tests may be removed during
    // the search.
    const root = `/sys/fs/cgroup/${controller}/${networkName(cluster.node.dataDir)}`;
    const found = readdirSync(root, { recursive: true, withFileTypes: true }).find(
      (entry) => entry.isDirectory() && entry.name === `pod${uid}`,
    );
    assert.ok(found !== undefined, `a cgroup of the pod ${uid} below ${root}`);
    return join(found.parentPath, found.name);
  };
  const idOf = (pod: Pod, name: string) =>
    pod.status?.containerStatuses?.find((each) => each.name === name)?.containerID?.split('://')[1] ?? '';
  const held = (pod: Pod, name?: string) => {
    const uid = pod.metadata?.uid ?? '';
    const read = (controller: string, file: string) =>
      Number(
        readFileSync(
          join(podDirectory(controller, uid), name === undefined ? '' : idOf(pod, name), file),
          'utf8',
        ),
      );
    return {
      shares: read('cpu', 'cpu.shares'),
      quota: read('cpu', 'cpu.cfs_quota_us'),
      memory: read('memory', 'memory.limit_in_bytes') / mebibyte,
    };
  };

  it('a resize is applied in the kernel and shown in the status and the events without a container restart', async () => {
    const [small, large] = [
      { cpu: '100m', memory: '64Mi' },
      { cpu: '200m', memory: '128Mi' },
    ];
    await cluster.apply(podOf('web', container('a', small), container('b', large)));
    await cluster.ready('web');
    const started = await get('web');
    assert.deepEqual(held(started), { shares: 307, quota: 30_000, memory: 192 });
    await resize('web', amounts('a', { cpu: '250m', memory: '96Mi' }), amounts('b', small));
    const pod = await settled('web');
    assert.deepEqual(held(pod), { shares: 358, quota: 35_000, memory: 160 });
    assert.deepEqual(held(pod, 'a'), { shares: 256, quota: 25_000, memory: 96 });
    assert.deepEqual(held(pod, 'b'), { shares: 102, quota: 10_000, memory: 64 });
    for (const { name, restartCount, resources, allocatedResources } of pod.status?.containerStatuses ?? []) {
      assert.equal(restartCount, 0);
      assert.equal(idOf(pod, name), idOf(started, name));
      const expected = name === 'a' ? { cpu: '250m', memory: '96Mi' } : small;
      assert.deepEqual([resources, allocatedResources], [{ requests: expected, limits: expected }, expected]);
    }
    for (const reason of ['ResizeStarted', 'ResizeCompleted']) await cluster.event(reason, reason);
  });

  it('a resize restarts a container only for the resources whose resizePolicy requests it', async () => {
    const both = { cpu: '100m', memory: '64Mi' };
    const resizePolicy = [{ resourceName: 'memory', restartPolicy: 'RestartContainer' }];
    await cluster.apply(podOf('anew', container('main', both, { resizePolicy })));
    await cluster.ready('anew');
    await resize('anew', amounts('main', { cpu: '150m', memory: '64Mi' }));
    const first = await settled('anew');
    assert.equal(first.status?.containerStatuses?.[0]?.restartCount, 0);
    assert.deepEqual(held(first, 'main'), { shares: 153, quota: 15_000, memory: 64 });
    await resize('anew', amounts('main', { cpu: '150m', memory: '100Mi' }));
    await eventually('the restart', async () => {
      const { status } = await get('anew');
      return status?.containerStatuses?.[0]?.restartCount === 1 ? true : undefined;
    });
    await cluster.ready('anew');
    const second = await settled('anew');
    assert.deepEqual(held(second, 'main'), { shares: 153, quota: 15_000, memory: 100 });
    assert.deepEqual(held(second), { shares: 153, quota: 15_000, memory: 100 });
  });

  it('a memory limit is not decreased below the memory in use, and the pod reports why', async () => {
    const both = { cpu: '100m', memory: '100Mi' };
    const hog = container('main', both, {
      command: ['sh', '-c', 'head -c 40m /dev/zero > /tmp/full/f; trap exit TERM; while :; do sleep 1; done'],
      volumeMounts: [{ name: 'full', mountPath: '/tmp/full' }],
    });
    const pod = podOf('hog', hog) as { spec: object };
    const volumes = [{ name: 'full', emptyDir: { medium: 'Memory' } }];
    await cluster.apply({ ...pod, spec: { ...pod.spec, volumes } });
    await cluster.ready('hog');
    await eventually('the memory to be in use', async () => {
      const { metadata } = await get('hog');
      const file = join(podDirectory('memory', metadata?.uid ?? ''), 'memory.usage_in_bytes');
      return Number(readFileSync(file, 'utf8')) > 40 * mebibyte ? true : undefined;
    });
    await resize('hog', amounts('main', { cpu: '100m', memory: '20Mi' }));
    const failed = await eventually('the refusal', async () => {
      const [condition] = conditionsOf(await get('hog'));
      return condition?.reason === 'Error' ? condition : undefined;
    });
    assert.equal(failed.type, 'PodResizeInProgress');
    assert.match(failed.message ?? '', /^cannot decrease memory limits: /);
    await cluster.event('ResizeError', 'ResizeError');
    const still = await get('hog');
    assert.equal(held(still, 'main').memory, 100);
    assert.equal(held(still).memory, 100);
    await resize('hog', amounts('main', { cpu: '100m', memory: '110Mi' }));
    assert.equal(held(await settled('hog'), 'main').memory, 110);
  });

  it('a resize is rejected or deferred when the node lacks capacity, also after a restart of kubeling', async () => {
    const node = JSON.parse(await cluster.kubectl('get', 'node', '-o', 'json')).items[0];
    const milli =
      Number.parseFloat(node.status.allocatable.cpu) * (/m$/.test(node.status.allocatable.cpu) ? 1 : 1_000);
    const of = (part: number) => ({ cpu: `${Math.floor(milli * part)}m`, memory: '32Mi' });
    await cluster.kubectl('delete', 'pod', '--all', '--wait=true', '--timeout=60s');
    await cluster.apply(
      podOf('grows', container('main', of(0.2))),
      podOf('stays', container('main', of(0.5))),
    );
    await cluster.ready('grows');
    await cluster.ready('stays');
    const over = await cluster.attempt([
      'patch',
      'pod',
      'grows',
      '--subresource=resize',
      '-p',
      patched([amounts('main', of(1.5))]),
    ]);
    assert.match(over.stderr, /Forbidden.*node didn't have enough allocatable resources: cpu/);
    const loose = { name: 'main', resources: { requests: { cpu: '1m' } } };
    const other = await cluster.attempt([
      'patch',
      'pod',
      'grows',
      '--subresource=resize',
      '-p',
      patched([loose]),
    ]);
    assert.match(other.stderr, /Pod QOS Class may not change as a result of resizing/);
    await resize('grows', amounts('main', of(0.7)));
    const waiting = async () =>
      await eventually('the pod to wait', async () => {
        const pod = await get('grows');
        const [condition] = conditionsOf(pod);
        return condition?.type === 'PodResizePending' && condition.reason === 'Deferred' ? pod : undefined;
      });
    const deferred = await waiting();
    assert.match(
      conditionsOf(deferred)[0]?.message ?? '',
      /^Node didn't have enough resource: cpu, requested: /,
    );
    assert.equal(conditionsOf(deferred)[0]?.observedGeneration, deferred.metadata?.generation);
    const small = held(deferred, 'main');
    await cluster.node.end('SIGKILL');
    assert.ok(existsSync(join(cluster.node.dataDir, 'kubelet', 'allocated_pods_state')));
    await cluster.node.start();
    const again = await waiting();
    assert.deepEqual(held(again, 'main'), small);
    assert.equal(again.status?.containerStatuses?.[0]?.restartCount, 0);
    await cluster.kubectl('delete', 'pod', 'stays', '--wait=true', '--timeout=60s');
    const grown = await settled('grows');
    assert.equal(held(grown, 'main').quota, Math.floor(milli * 0.7) * 100);
    assert.equal(grown.status?.containerStatuses?.[0]?.restartCount, 0);
  });

  it('each of fifteen consecutive resizes is applied to the cgroup', async (t) => {
    await cluster.apply(podOf('quick', container('main', { cpu: '100m', memory: '32Mi' })));
    await cluster.ready('quick');
    const pod = await get('quick');
    const file = join(podDirectory('cpu', pod.metadata?.uid ?? ''), idOf(pod, 'main'), 'cpu.cfs_quota_us');
    const path = '/api/v1/namespaces/default/pods/quick/resize';
    using api = await ApiCaller.open(cluster.kubeconfig);
    for (let round = 1; round <= 15; round++) {
      const cpu = 100 + round;
      const { spec, metadata } = await settled('quick');
      const containers = spec?.containers.map((each) => ({
        ...each,
        ...amounts('main', { cpu: `${cpu}m`, memory: '32Mi' }),
      }));
      const put = api.call('PUT', path, { ...pod, metadata, spec: { ...spec, containers } });
      while (Number(readFileSync(file, 'utf8')) !== cpu * 100) await clock.sleep(1, t.signal);
      assert.equal((await put).status, 200);
    }
  });
});
