import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import {
  type CgroupHost,
  type CgroupLayout,
  collectLogs,
  detectCgroupLayout,
  randomHex,
  realCgroupHost,
  realClock,
  systemRandom,
} from '../../src/lib/index.ts';
import { podUid } from '../../src/pods/index.ts';
import { CgroupManager, PodContainerManager, QosContainerManager } from '../../src/resources/index.ts';
import { systemdSlices } from '../../src/resources/systemd/index.ts';
import { RecordedJournal } from '../fakes/journal.ts';
import { aPod } from '../fakes/pods.ts';
import { scratchFolder } from '../fakes/scratch-folder.ts';
import { SimulatedCgroupHost } from '../fakes/simulated-cgroup-host.ts';
import { busSkipReason, openBus } from '../logind/bus.ts';
import { StandInSystemd } from '../systemd/stand-in.ts';

const clock = realClock();
const { signal } = new AbortController();
const amount = { cpu: '333m', memory: '64Mi' };
const pod = aPod({
  metadata: { uid: podUid('11111111-aaaa-4bbb-8ccc-000000000001') },
  spec: { containers: [{ name: 'main', image: 'x', resources: { requests: amount, limits: amount } }] },
});

interface Environment {
  readonly host: CgroupHost;
  readonly layout: CgroupLayout;
}

async function simulated(): Promise<Environment> {
  const host = new SimulatedCgroupHost({ mode: 'v2' });
  return { host, layout: await detectCgroupLayout(host) };
}

function aNode({ host, layout }: Environment, busPath: string) {
  const { logger } = collectLogs(clock);
  const slices = systemdSlices({ clock, busPath });
  const cgroups = new CgroupManager({ host, layout, driver: 'systemd', slices, clock });
  const root = [`klgtest${randomHex(systemRandom(), 6)}`];
  const qos = new QosContainerManager({
    cgroups,
    cgroupRoot: root,
    kubepods: { cpuShares: 2048, memoryBytes: 1_073_741_824, pidsLimit: 5000 },
    cpuset: 'all',
    hugePageSizes: [],
    activePods: () => [],
    clock,
    logger,
  });
  const settings = { cpuCfsQuota: true, cpuCfsQuotaPeriodUs: 100_000, podPidsLimit: 64, hugePageSizes: [] };
  const pods = new PodContainerManager({ cgroups, qos, settings, journal: new RecordedJournal(), logger });
  const unit = (name: string) => `${root}${name}.slice`;
  return { cgroups, root, qos, pods, unit };
}

const accounting = {
  MemoryAccounting: true,
  CPUAccounting: true,
  TasksAccounting: true,
  DefaultDependencies: false,
};

/** The expected unit properties; cgroups v1 and v2 use different property names for the limits. */
const expected = {
  1: {
    pod: { BlockIOAccounting: true, CPUShares: 340n, MemoryLimit: 67_108_864n },
    kubepods: { BlockIOAccounting: true, CPUShares: 2048n, MemoryLimit: 1_073_741_824n },
  },
  2: {
    pod: { IOAccounting: true, CPUWeight: 13n, MemoryMax: 67_108_864n },
    kubepods: { IOAccounting: true, CPUWeight: 79n, MemoryMax: 1_073_741_824n, AllowedCPUs: [0b1111] },
  },
} as const;

describe('systemd slices for pod cgroups', { skip: busSkipReason(), timeout: 60_000 }, () => {
  const parts = new AsyncDisposableStack();
  let directory: string;
  let busPath: string;

  before(async () => {
    directory = parts.use(scratchFolder('klg-systemd-')).path;
    busPath = parts.use(await openBus(directory)).path;
  });
  after(() => parts.disposeAsync());

  async function wholeLife(environment: Environment): Promise<void> {
    await using systemd = await StandInSystemd.open({ busPath, ...environment });
    const { cgroups, root, qos, pods, unit } = aNode(environment, busPath);
    using _open = cgroups;
    try {
      await cgroups.create(root, {}, signal);
      await qos.start(signal);
      assert.equal(await pods.ensureExists(pod, signal), 'created');
      assert.equal(await pods.ensureExists(pod, signal), 'there');
      const podUnit = unit('-kubepods-pod11111111_aaaa_4bbb_8ccc_000000000001');
      const { version } = environment.layout;
      assert.deepEqual(Object.fromEntries(systemd.units.get(podUnit) ?? []), {
        Description: `kubelet cgroup ${podUnit}`,
        Wants: [unit('-kubepods')],
        ...accounting,
        ...expected[version].pod,
        CPUQuotaPeriodUSec: 100_000n,
        CPUQuotaPerSecUSec: 340_000n,
        TasksMax: 64n,
      });
      assert.deepEqual(Object.fromEntries(systemd.units.get(unit('-kubepods')) ?? []), {
        Description: `kubelet cgroup ${unit('-kubepods')}`,
        Wants: [unit('')],
        ...accounting,
        ...expected[version].kubepods,
        TasksMax: 5000n,
      });
      const { cpuQuotaUs, memoryBytes } = await pods.current(pod);
      assert.deepEqual([cpuQuotaUs, memoryBytes], [34_000, 67_108_864]);
      await pods.set(pod, { cpuQuotaUs: -1, cpuPeriodUs: 100_000 }, signal);
      assert.equal(systemd.units.get(podUnit)?.get('CPUQuotaPerSecUSec'), 2n ** 64n - 1n);
      // Creates the slice again when one of its cgroup directories was removed, although the unit
      // still exists.
      const [dir = ''] = [...(await existing(environment, cgroups.path(pods.nameOf(pod))))].slice(-1);
      await environment.host.rmdir(dir);
      assert.equal(await pods.ensureExists(pod, signal), 'created');
      await pods.destroy(pod, signal);
      assert.equal(systemd.units.has(podUnit), false);
      assert.deepEqual(await existing(environment, cgroups.path(pods.nameOf(pod))), []);
      await pods.destroy(pod, signal);
    } finally {
      await cgroups.destroy(root, signal);
    }
  }

  async function existing({ host, layout }: Environment, path: string): Promise<readonly string[]> {
    const roots = layout.version === 2 ? [layout.root] : [...new Set(layout.controllers.values())];
    const dirs = roots.map((root) => `${root}${path}`);
    const there = await Promise.all(
      dirs.map((dir) =>
        host.fsType(dir).then(
          () => true,
          () => false,
        ),
      ),
    );
    return dirs.filter((_, index) => there[index]);
  }

  it("a slice serves as a pod's cgroup from creation to removal (simulated cgroups v2)", async () => {
    await wholeLife(await simulated());
  });

  it("a slice serves as a pod's cgroup from creation to removal (cgroups v1 of this machine)", async (test) => {
    const host = realCgroupHost();
    const layout = await detectCgroupLayout(host);
    if (process.getuid?.() !== 0 || layout.version === 2) return test.skip('needs root and cgroups v1');
    await wholeLife({ host, layout });
  });

  it('slices are requested again after D-Bus reconnects', async () => {
    const { path: own } = parts.use(scratchFolder('klg-systemd-'));
    const environment = await simulated();
    let bus = await openBus(own);
    let systemd = await StandInSystemd.open({ busPath: bus.path, ...environment });
    const { cgroups } = aNode(environment, bus.path);
    using _open = cgroups;
    await cgroups.create(['one'], {}, signal);
    await bus[Symbol.asyncDispose]();
    await assert.rejects(cgroups.create(['two'], {}, signal), {
      code: 'CGROUP_CREATE',
      message: /^Cannot create the cgroup \/two\.slice: Cannot start the unit two\.slice by systemd: /,
    });
    bus = parts.use(await openBus(own));
    systemd = parts.use(await StandInSystemd.open({ busPath: bus.path, ...environment }));
    await cgroups.create(['two'], {}, signal);
    assert.deepEqual([...systemd.units.keys()], ['two.slice']);
  });

  it('a missing D-Bus daemon and a bus without systemd are reported', async () => {
    const environment = await simulated();
    const { cgroups: noBus } = aNode(environment, join(directory, 'nothing'));
    const hint = /set cgroupDriver: cgroupfs/;
    await assert.rejects(noBus.create(['a'], {}, signal), (error: Error) => {
      assert.match(error.message, /Cannot use the message bus at .*\/nothing: connect ENOENT/);
      assert.match(error.message, hint);
      return true;
    });
    const { cgroups: noSystemd } = aNode(environment, busPath);
    using _open = noSystemd;
    await assert.rejects(noSystemd.create(['a'], {}, signal), (error: Error) => {
      assert.match(error.message, /unit a\.slice by systemd: .*ServiceUnknown/);
      assert.match(error.message, hint);
      return true;
    });
  });
});
