import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RecordedJournal } from '../../../test/fakes/journal.ts';
import { aPod } from '../../../test/fakes/pods.ts';
import { SimulatedCgroupHost } from '../../../test/fakes/simulated-cgroup-host.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs, detectCgroupLayout, MetricRegistry } from '../../lib/index.ts';
import { type Pod, podUid, type QosClass, qosClass } from '../../pods/index.ts';
import { CgroupManager, cgroupMetrics } from './cgroup-manager.ts';
import type { CgroupDriver } from './cgroup-name.ts';
import { noPodCgroups, PodContainerManager } from './pod-container-manager.ts';
import { QosContainerManager } from './qos-container-manager.ts';

const signal = new AbortController().signal;
const amount = { cpu: '500m', memory: '64Mi' };
const guaranteed = podWith('g-1', { requests: amount, limits: amount });
const burstable = podWith('b-1', { requests: { cpu: '250m' } });
const bestEffort = podWith('e-1', {});

function podWith(uid: string, resources: object): Pod {
  return aPod({
    metadata: { uid: podUid(uid) },
    spec: { containers: [{ name: 'main', image: 'x', resources }] },
  });
}

async function aNode(host: SimulatedCgroupHost, driver: CgroupDriver = 'cgroupfs') {
  const clock = new VirtualClock();
  const { logger, records } = collectLogs(clock);
  const journal = new RecordedJournal();
  const active: Pod[] = [];
  const cgroups = new CgroupManager({ host, layout: await detectCgroupLayout(host), driver, clock });
  const qos = new QosContainerManager({
    cgroups,
    cgroupRoot: [],
    kubepods: { cpuShares: 2048, memoryBytes: 1_073_741_824, pidsLimit: 5000 },
    hugePageSizes: ['2MB'],
    activePods: (quality) => active.filter((pod) => qosClass(pod) === quality),
    clock,
    logger,
  });
  const settings = {
    cpuCfsQuota: true,
    cpuCfsQuotaPeriodUs: 100_000,
    podPidsLimit: 64,
    hugePageSizes: ['2MB'],
  };
  const pods = new PodContainerManager({ cgroups, qos, settings, journal, logger });
  return { host, clock, records, journal, active, cgroups, qos, pods };
}

async function readAll(host: SimulatedCgroupHost, paths: readonly string[]) {
  const texts = await Promise.all(
    paths.map(async (path) => (await host.read(`/sys/fs/cgroup/${path}`)).trim()),
  );
  return Object.fromEntries(paths.map((path, index) => [path, texts[index]]));
}

describe('pod cgroups with cgroups v1', () => {
  for (const mode of ['v1', 'hybrid'] as const) {
    it(`pod cgroups are created in their QoS class with their values in every tree (${mode})`, async () => {
      const { host, active, qos, pods } = await aNode(
        new SimulatedCgroupHost({ mode, unmounted: ['hugetlb'] }),
      );
      await qos.start(signal);
      active.push(guaranteed, burstable, bestEffort);
      for (const pod of active) assert.equal(await pods.ensureExists(pod, signal), 'created');
      const expected = {
        'cpu,cpuacct/kubepods/cpu.shares': '2048',
        'memory/kubepods/memory.limit_in_bytes': '1073741824',
        'pids/kubepods/pids.max': '5000',
        'cpu,cpuacct/kubepods/burstable/cpu.shares': '256',
        'cpu,cpuacct/kubepods/besteffort/cpu.shares': '2',
        'cpu,cpuacct/kubepods/podg-1/cpu.shares': '512',
        'cpu,cpuacct/kubepods/podg-1/cpu.cfs_quota_us': '50000',
        'memory/kubepods/podg-1/memory.limit_in_bytes': '67108864',
        'cpu,cpuacct/kubepods/burstable/podb-1/cpu.shares': '256',
        'cpu,cpuacct/kubepods/burstable/podb-1/cpu.cfs_quota_us': '-1',
        'cpu,cpuacct/kubepods/besteffort/pode-1/cpu.shares': '2',
        'cpuset/kubepods/besteffort/pode-1/cpuset.cpus': '0-3',
        'cpuset/kubepods/besteffort/pode-1/cpuset.mems': '0',
        'pids/kubepods/besteffort/pode-1/pids.max': '64',
      };
      assert.deepEqual(await readAll(host, Object.keys(expected)), expected);
      assert.deepEqual(
        host.directories().filter((path) => path.includes('/hugetlb/')),
        [],
      );
    });
  }

  it('huge pages are limited in kubepods and in each pod, but not in a QoS class', async () => {
    const mounts = ['cpu,cpuacct', 'cpuset', 'memory', 'pids', 'hugetlb', 'name=systemd'];
    const { host, qos, pods } = await aNode(new SimulatedCgroupHost({ mode: 'v1', mounts }));
    const pages = { memory: '64Mi', 'hugepages-2Mi': '8Mi' };
    await qos.start(signal);
    await pods.ensureExists(podWith('h-1', { requests: pages, limits: pages }), signal);
    await pods.ensureExists(bestEffort, signal);
    const expected = {
      'hugetlb/kubepods/burstable/hugetlb.2MB.limit_in_bytes': '4611686018427387904',
      'hugetlb/kubepods/besteffort/hugetlb.2MB.limit_in_bytes': '4611686018427387904',
      'hugetlb/kubepods/burstable/podh-1/hugetlb.2MB.limit_in_bytes': '8388608',
      'hugetlb/kubepods/besteffort/pode-1/hugetlb.2MB.limit_in_bytes': '0',
    };
    assert.deepEqual(await readAll(host, Object.keys(expected)), expected);
  });

  it('the runtime can add processes to the cgroup of a created pod', async () => {
    const { host, qos, pods } = await aNode(new SimulatedCgroupHost({ mode: 'v1' }));
    await qos.start(signal);
    await pods.ensureExists(bestEffort, signal);
    host.attach(99, `/sys/fs/cgroup/cpuset${pods.cgroupParent(bestEffort)}`);
  });
});

describe('pod cgroups with cgroups v2', () => {
  it('cgroups v2: a pod cgroup gets every controller from its parents', async () => {
    const { host, active, qos, pods } = await aNode(new SimulatedCgroupHost({ mode: 'v2' }));
    await qos.start(signal);
    active.push(guaranteed, burstable);
    await pods.ensureExists(guaranteed, signal);
    await pods.ensureExists(burstable, signal);
    const expected = {
      'kubepods/cpu.weight': '79',
      'kubepods/memory.max': '1073741824',
      'kubepods/burstable/cpu.weight': '10',
      'kubepods/besteffort/cpu.weight': '1',
      'kubepods/podg-1/cpu.weight': '20',
      'kubepods/podg-1/cpu.max': '50000 100000',
      'kubepods/podg-1/memory.max': '67108864',
      'kubepods/podg-1/pids.max': '64',
      'kubepods/burstable/podb-1/cpu.max': 'max 100000',
    };
    assert.deepEqual(await readAll(host, Object.keys(expected)), expected);
    assert.equal(await pods.exists(burstable), true);
  });

  it('cgroups v2: a pod cgroup without its controllers does not count as existing', async () => {
    const { host, cgroups } = await aNode(new SimulatedCgroupHost({ mode: 'v2' }));
    await host.mkdir('/sys/fs/cgroup/kubepods');
    assert.deepEqual(await cgroups.missing(['kubepods']), ['cpu', 'cpuset', 'memory', 'pids']);
  });
});

describe('creating a pod cgroup', () => {
  it('creates a pod cgroup only if it does not exist', async () => {
    const { qos, pods } = await aNode(new SimulatedCgroupHost({ mode: 'v1' }));
    await qos.start(signal);
    assert.equal(await pods.ensureExists(bestEffort, signal), 'created');
    assert.equal(await pods.ensureExists(bestEffort, signal), 'there');
  });

  it('completes a pod cgroup that is missing in one tree', async () => {
    const { host, qos, pods } = await aNode(new SimulatedCgroupHost({ mode: 'v1' }));
    await qos.start(signal);
    await pods.ensureExists(bestEffort, signal);
    await host.rmdir('/sys/fs/cgroup/pids/kubepods/besteffort/pode-1');
    assert.equal(await pods.exists(bestEffort), false);
    assert.equal(await pods.ensureExists(bestEffort, signal), 'created');
    assert.equal(await pods.exists(bestEffort), true);
  });

  it('measures the creation, update and removal of pod cgroups', async () => {
    const { clock } = await aNode(new SimulatedCgroupHost({ mode: 'v1' }));
    const metrics = new MetricRegistry({ onError: (error) => assert.fail(String(error)) });
    const host = new SimulatedCgroupHost({ mode: 'v1' });
    const layout = await detectCgroupLayout(host);
    const observe = cgroupMetrics(metrics);
    const cgroups = new CgroupManager({ host, layout, driver: 'cgroupfs', clock, observe });
    await cgroups.create(['a'], {}, signal);
    await cgroups.update(['a'], { cpuShares: 5 }, signal);
    await cgroups.destroy(['a'], signal);
    const text = await metrics.expose(signal);
    for (const operation of ['create', 'update', 'destroy']) {
      const counted = `kubelet_cgroup_manager_duration_seconds_count{operation_type="${operation}"} 1`;
      assert.ok(text.includes(counted), operation);
    }
  });

  it('reports a failed pod cgroup creation as pod event', async () => {
    const { pods, journal } = await aNode(new SimulatedCgroupHost({ mode: 'v1' }), 'systemd');
    await assert.rejects(pods.ensureExists(bestEffort, signal), { code: 'CGROUP_DRIVER' });
    assert.equal(journal.events[0]?.reason, 'FailedCreatePodContainer');
    assert.match(String(journal.events[0]?.message), /SystemdCgroup = false/);
  });

  it('creates a pod cgroup without a value that the kernel rejects, and reports the rejection', async () => {
    const { host, qos, pods, journal } = await aNode(new SimulatedCgroupHost({ mode: 'v1' }));
    await qos.start(signal);
    await pods.ensureExists(guaranteed, signal);
    host.setMemoryUsage('/sys/fs/cgroup/memory/kubepods/podg-1', 100_000_000);
    await host.rmdir('/sys/fs/cgroup/pids/kubepods/podg-1');
    await pods.ensureExists(guaranteed, signal);
    assert.match(String(journal.steps[0]?.message), /more is in use: 100000000 bytes now/);
  });
});

describe('the kubepods cgroup', () => {
  it('requires the configured cgroupRoot to exist for kubepods', async () => {
    const host = new SimulatedCgroupHost({ mode: 'v1' });
    const { cgroups, clock, active } = await aNode(host);
    const { logger } = collectLogs(clock);
    const cgroupRoot = ['missing'];
    const deps = {
      cgroups,
      cgroupRoot,
      kubepods: {},
      hugePageSizes: [],
      activePods: (quality: QosClass) => active.filter((pod) => qosClass(pod) === quality),
      clock,
      logger,
    };
    await assert.rejects(new QosContainerManager(deps).start(signal), { code: 'CGROUP_ROOT' });
  });

  it('restores kubepods within a minute after a change or removal by another process', async () => {
    const { host, qos, clock } = await aNode(new SimulatedCgroupHost({ mode: 'v1' }));
    await qos.start(signal);
    await host.rmdir('/sys/fs/cgroup/memory/kubepods/besteffort');
    await host.write('/sys/fs/cgroup/cpu,cpuacct/kubepods/cpu.shares', '5');
    const stop = new AbortController();
    const running = qos.run(stop.signal);
    await clock.advance(60_000);
    assert.equal((await host.read('/sys/fs/cgroup/cpu,cpuacct/kubepods/cpu.shares')).trim(), '2048');
    assert.deepEqual(await host.subdirectories('/sys/fs/cgroup/memory/kubepods'), [
      'besteffort',
      'burstable',
    ]);
    stop.abort();
    await running;
    assert.equal(clock.pendingTimers, 0);
  });
});

describe('node allocatable enforcement', () => {
  async function anEnforcedNode(host: SimulatedCgroupHost) {
    const { cgroups, clock, active } = await aNode(host);
    const { logger } = collectLogs(clock);
    const reported: string[] = [];
    const qos = new QosContainerManager({
      cgroups,
      cgroupRoot: [],
      kubepods: { cpuShares: 2048, memoryBytes: 1_073_741_824 },
      enforcement: {
        enforced: () => void reported.push('enforced'),
        failed: (cgroup, error) => void reported.push(`failed ${cgroup}: ${(error as Error).message}`),
      },
      hugePageSizes: [],
      activePods: () => active,
      clock,
      logger,
    });
    return { qos, clock, told: reported };
  }

  it('reports the enforcement of node allocatable once', async () => {
    const { qos, told } = await anEnforcedNode(new SimulatedCgroupHost({ mode: 'v1' }));
    await qos.start(signal);
    await qos.start(signal);
    assert.deepEqual(told, ['enforced']);
  });

  it('retries setting the limits of node allocatable every minute while pods use more than these limits, and blocks no pod', async () => {
    const host = new SimulatedCgroupHost({ mode: 'v1' });
    const { qos, clock, told } = await anEnforcedNode(host);
    const kubepods = '/sys/fs/cgroup/memory/kubepods';
    await host.mkdir(kubepods);
    host.setMemoryUsage(kubepods, 2_000_000_000);
    await qos.start(signal);
    const stop = new AbortController();
    const running = qos.run(stop.signal);
    await clock.advance(60_000);
    assert.equal(told.length, 2);
    assert.match(told[1] ?? '', /^failed \/kubepods: .*more is in use: 2000000000 bytes now/);
    host.setMemoryUsage(kubepods, 500_000_000);
    await clock.advance(60_000);
    assert.equal(told[2], 'enforced');
    assert.equal((await host.read(`${kubepods}/memory.limit_in_bytes`)).trim(), '1073741824');
    stop.abort();
    await running;
  });
});

describe('cgroups of orphaned pods', () => {
  const rules = { mayRun: () => false, hasVolumes: () => false };

  it('removes cgroups of orphaned pods with their processes, even if only one tree has them', async () => {
    const { host, qos, pods } = await aNode(new SimulatedCgroupHost({ mode: 'hybrid' }));
    await qos.start(signal);
    await pods.ensureExists(burstable, signal);
    await host.mkdir('/sys/fs/cgroup/memory/kubepods/burstable/podb-1/abc');
    host.attach(4242, '/sys/fs/cgroup/memory/kubepods/burstable/podb-1/abc');
    await host.mkdir('/sys/fs/cgroup/freezer/kubepods/podlost');
    assert.deepEqual([...(await pods.list()).keys()].toSorted(), ['b-1', 'lost']);
    assert.deepEqual((await pods.removeOrphans(rules, signal)).toSorted(), ['b-1', 'lost']);
    assert.deepEqual(
      host.directories().filter((path) => path.includes('/pod')),
      [],
    );
  });

  it('keeps the cgroup of an orphaned pod with the minimum CPU while its volumes are mounted', async () => {
    const { host, qos, pods } = await aNode(new SimulatedCgroupHost({ mode: 'v1' }));
    await qos.start(signal);
    await pods.ensureExists(burstable, signal);
    assert.deepEqual(await pods.removeOrphans({ ...rules, hasVolumes: () => true }, signal), []);
    const shares = await host.read('/sys/fs/cgroup/cpu,cpuacct/kubepods/burstable/podb-1/cpu.shares');
    assert.equal(shares.trim(), '2');
  });

  it('keeps the cgroup of an orphaned pod while the pod may run', async () => {
    const { qos, pods } = await aNode(new SimulatedCgroupHost({ mode: 'v1' }));
    await qos.start(signal);
    await pods.ensureExists(burstable, signal);
    assert.deepEqual(await pods.removeOrphans({ ...rules, mayRun: () => true }, signal), []);
    assert.equal(await pods.exists(burstable), true);
  });

  it("retries the removal of an orphaned pod's cgroup while a process does not exit", async () => {
    const { host, qos, pods, clock, records } = await aNode(new SimulatedCgroupHost({ mode: 'v1' }));
    await qos.start(signal);
    await pods.ensureExists(burstable, signal);
    host.attach(4242, '/sys/fs/cgroup/memory/kubepods/burstable/podb-1');
    host.makeUnkillable(4242);
    const removing = pods.removeOrphans(rules, signal);
    await clock.advance(60_000);
    assert.deepEqual(await removing, []);
    assert.ok(records.toArray().some((record) => JSON.stringify(record).includes('4242')));
  });

  it('keeps the cgroup of an orphaned pod if a pod with the same UID is created concurrently', async () => {
    const { host, qos, pods, clock } = await aNode(new SimulatedCgroupHost({ mode: 'v1' }));
    await qos.start(signal);
    await pods.ensureExists(burstable, signal);
    host.attach(4242, '/sys/fs/cgroup/memory/kubepods/burstable/podb-1');
    for (let turns = 0; turns < 60; turns++) {
      let isBack = false;
      const removing = pods.removeOrphans({ ...rules, mayRun: () => isBack }, signal);
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      isBack = true;
      const making = pods.ensureExists(burstable, signal);
      await clock.advance(10_000);
      await Promise.all([removing, making]);
      assert.equal(
        await pods.exists(burstable),
        true,
        `removed although it was created again after ${turns} turns`,
      );
    }
  });
});

describe('a node without pod cgroups', () => {
  it('without pod cgroups, uses the cgroup parent of the runtime and removes nothing', async () => {
    assert.equal(noPodCgroups.cgroupParent(burstable), '');
    assert.equal(await noPodCgroups.ensureExists(burstable, signal), 'there');
    await noPodCgroups.destroy(burstable, signal);
    assert.equal((await noPodCgroups.list()).size, 0);
  });
});

describe('the limits of a pod', () => {
  for (const mode of ['v1', 'hybrid', 'v2'] as const) {
    it(`reads back the limits of a pod as they were set, and lifts them for an unlimited pod (${mode})`, async () => {
      const { active, qos, pods } = await aNode(new SimulatedCgroupHost({ mode }));
      await qos.start(signal);
      const odd = { cpu: '333m', memory: '64000001' };
      const before = podWith('g-1', { requests: odd, limits: odd });
      active.push(before);
      await pods.ensureExists(before, signal);
      assert.deepEqual(await pods.current(before), pods.wanted(before));
      await pods.set(before, pods.wanted(before), signal);
      assert.deepEqual(await pods.current(before), pods.wanted(before));
      const after = podWith('g-1', { requests: { cpu: '700m', memory: '1Mi' } });
      const unlimited = { ...after, status: { qosClass: 'Guaranteed' } };
      assert.deepEqual([pods.wanted(burstable).cpuQuotaUs, pods.wanted(burstable).memoryBytes], [-1, -1]);
      await pods.set(before, { cpuShares: 716, cpuQuotaUs: -1, memoryBytes: -1 }, signal);
      const { cpuShares, cpuQuotaUs, memoryBytes } = await pods.current(unlimited);
      assert.deepEqual([cpuQuotaUs, memoryBytes], [-1, -1]);
      assert.equal(cpuShares, pods.wanted(unlimited).cpuShares);
    });
  }
});
