import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RecordedJournal } from '../../test/fakes/journal.ts';
import { aPod } from '../../test/fakes/pods.ts';
import { SimulatedCgroupHost } from '../../test/fakes/simulated-cgroup-host.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { collectLogs, detectCgroupLayout } from '../lib/index.ts';
import { type Pod, podUid } from '../pods/index.ts';
import type { Slice, SliceManager } from './cgroups/cgroup-manager.ts';
import { CgroupManager } from './cgroups/cgroup-manager.ts';
import type { CgroupValues } from './cgroups/cgroup-values.ts';
import { PodContainerManager } from './cgroups/pod-container-manager.ts';
import { QosContainerManager } from './cgroups/qos-container-manager.ts';

const { signal } = new AbortController();
const odd = { cpu: '333m', memory: '64Mi' };
const pod = podWith('b-1', { requests: { cpu: '100m' }, limits: odd });

function podWith(uid: string, resources: object): Pod {
  const spec = { containers: [{ name: 'main', image: 'x', resources }] };
  return aPod({ metadata: { uid: podUid(uid) }, spec });
}

type Verb = 'start' | 'set' | 'stop';

/** A fake systemd slice manager that records its calls and fails on request. */
class RecordedSlices implements SliceManager {
  readonly asked: string[] = [];
  readonly values = new Map<string, CgroupValues>();
  readonly failing = new Set<Verb>();
  /** Called when the fake stops a slice. */
  onStop = () => {};

  async start(slice: Slice): Promise<void> {
    this.#note('start', `${slice.unit} in ${slice.parent}`);
  }

  async set(slice: Slice, values: CgroupValues): Promise<void> {
    this.#note('set', slice.unit);
    this.values.set(slice.unit, { ...this.values.get(slice.unit), ...values });
  }

  async stop(slice: Slice): Promise<void> {
    this.onStop();
    this.#note('stop', slice.unit);
  }

  [Symbol.dispose](): void {}

  #note(verb: Verb, what: string): void {
    this.asked.push(`${verb} ${what}`);
    if (this.failing.has(verb)) throw new Error(`the fake systemd cannot ${verb} ${what}`);
  }
}

async function aNode(mode: 'v1' | 'v2', cpuset?: 'all') {
  const host = new SimulatedCgroupHost({ mode });
  const clock = new VirtualClock();
  const { logger } = collectLogs(clock);
  const journal = new RecordedJournal();
  const slices = new RecordedSlices();
  const layout = await detectCgroupLayout(host);
  const cgroups = new CgroupManager({ host, layout, driver: 'systemd', slices, clock });
  const qos = new QosContainerManager({
    cgroups,
    cgroupRoot: [],
    kubepods: { cpuShares: 2048, memoryBytes: 1_073_741_824 },
    cpuset,
    hugePageSizes: [],
    activePods: () => [],
    clock,
    logger,
  });
  const settings = { cpuCfsQuota: true, cpuCfsQuotaPeriodUs: 100_000, podPidsLimit: 64, hugePageSizes: [] };
  const pods = new PodContainerManager({ cgroups, qos, settings, journal, logger });
  const read = async (path: string) => (await host.read(`/sys/fs/cgroup/${path}`)).trim();
  return { host, slices, cgroups, qos, pods, journal, read };
}

const podPath = 'kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podb_1.slice';
const podUnit = 'kubepods-burstable-podb_1.slice';

describe('cgroups with the systemd driver', () => {
  it('creates cgroups as nested slices, with values in systemd and in the cgroup files', async () => {
    const { slices, qos, pods, read } = await aNode('v2');
    await qos.start(signal);
    assert.equal(await pods.ensureExists(pod, signal), 'created');
    assert.deepEqual(
      slices.asked.filter((line) => line.startsWith('start')),
      [
        'start kubepods.slice in -.slice',
        'start kubepods-besteffort.slice in kubepods.slice',
        'start kubepods-burstable.slice in kubepods.slice',
        `start ${podUnit} in kubepods-burstable.slice`,
      ],
    );
    assert.deepEqual(slices.asked.slice(-2), [
      `start ${podUnit} in kubepods-burstable.slice`,
      `set ${podUnit}`,
    ]);
    const { cpuQuotaUs, memoryBytes, pidsLimit } = slices.values.get(podUnit) ?? {};
    assert.deepEqual([cpuQuotaUs, memoryBytes, pidsLimit], [34_000, 67_108_864, 64]);
    assert.equal(await read(`${podPath}/cpu.max`), '34000 100000');
    assert.equal(await read(`${podPath}/memory.max`), '67108864');
    assert.equal(slices.values.get('kubepods.slice')?.memoryBytes, 1_073_741_824);
  });

  for (const mode of ['v1', 'v2'] as const) {
    it(`reads the limits of a pod's cgroup back as they were set, also after a resize (${mode})`, async () => {
      const { slices, qos, pods } = await aNode(mode);
      await qos.start(signal);
      await pods.ensureExists(pod, signal);
      assert.deepEqual(await pods.current(pod), pods.wanted(pod));
      const grown = podWith('b-1', { requests: { cpu: '100m' }, limits: { cpu: '1501m', memory: '1Gi' } });
      await pods.set(grown, pods.wanted(grown), signal);
      assert.deepEqual(await pods.current(grown), pods.wanted(grown));
      assert.equal(slices.values.get(podUnit)?.cpuQuotaUs, 151_000);
    });
  }

  it('sets the cpuset of kubepods to all CPUs, so that systemd keeps the cpuset controller', async () => {
    const { slices, qos, read } = await aNode('v2', 'all');
    await qos.start(signal);
    assert.equal(slices.values.get('kubepods.slice')?.cpus, '0-3');
    assert.equal(await read('kubepods.slice/cpuset.cpus'), '0-3');
    assert.equal(slices.values.get('kubepods-burstable.slice')?.cpus, undefined);
  });

  it('leaves the cpuset of kubepods unset with cgroups v1 or with a static CPU policy', async () => {
    for (const [mode, cpuset] of [
      ['v1', 'all'],
      ['v2', undefined],
    ] as const) {
      const { slices, qos } = await aNode(mode, cpuset);
      await qos.start(signal);
      assert.equal(slices.values.get('kubepods.slice')?.cpus, undefined);
    }
  });

  it('stops the slice of a pod once it is empty, which removes its cgroup', async () => {
    const { host, slices, qos, pods, cgroups } = await aNode('v1');
    await qos.start(signal);
    await pods.ensureExists(pod, signal);
    host.attach(4242, `/sys/fs/cgroup/memory/${podPath}`);
    const observed: (readonly number[])[] = [];
    const left = cgroups.pids(pods.nameOf(pod));
    assert.deepEqual(await left, [4242]);
    slices.onStop = () => void cgroups.pids(pods.nameOf(pod)).then((pids) => observed.push(pids));
    await pods.destroy(pod, signal);
    assert.deepEqual(slices.asked.at(-1), `stop ${podUnit}`);
    assert.deepEqual(observed, [[]]);
    assert.deepEqual(
      host.directories().filter((path) => path.includes('podb_1')),
      [],
    );
  });

  it('reports a pod event and fails if systemd cannot create the slice', async () => {
    const { slices, qos, pods, journal } = await aNode('v2');
    await qos.start(signal);
    slices.failing.add('start');
    await assert.rejects(pods.ensureExists(pod, signal), { code: 'CGROUP_CREATE' });
    assert.equal(journal.events[0]?.reason, 'FailedCreatePodContainer');
    assert.match(
      String(journal.events[0]?.message),
      /the fake systemd cannot start kubepods-burstable-podb_1\.slice/,
    );
  });

  it('writes values to the cgroup files even if systemd rejects them', async () => {
    const { slices, qos, pods, journal, read } = await aNode('v2');
    await qos.start(signal);
    slices.failing.add('set');
    assert.equal(await pods.ensureExists(pod, signal), 'created');
    assert.equal(await read(`${podPath}/memory.max`), '67108864');
    assert.match(
      String(journal.steps.at(-1)?.message),
      /the fake systemd cannot set kubepods-burstable-podb_1\.slice/,
    );
    await assert.rejects(pods.set(pod, { cpuShares: 5 }, signal), {
      code: 'CGROUP_UPDATE',
      message: /the fake systemd cannot set kubepods-burstable-podb_1\.slice/,
    });
  });

  it('keeps the cgroup of a pod while systemd cannot stop its slice, unless the unit is missing', async () => {
    const { slices, qos, pods } = await aNode('v2');
    await qos.start(signal);
    await pods.ensureExists(pod, signal);
    slices.failing.add('stop');
    await assert.rejects(pods.destroy(pod, signal), {
      code: 'CGROUP_BUSY',
      message: /the fake systemd cannot stop kubepods-burstable-podb_1\.slice/,
    });
    assert.equal(await pods.exists(pod), true);
    await pods.destroy(podWith('never-made', {}), signal);
  });

  it('creates cgroups without systemd when they are addressed by plain paths', async () => {
    const { slices, cgroups } = await aNode('v2');
    const plain = cgroups.plain();
    await plain.create(plain.parse('/system.slice/kubelet.service'), {}, signal);
    assert.equal(await plain.exists(['system.slice', 'kubelet.service']), true);
    assert.deepEqual(slices.asked, []);
  });
});
