import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import {
  cgroupMagic,
  cgroupRoots,
  collectLogs,
  detectCgroupLayout,
  randomHex,
  realCgroupHost,
  realClock,
  systemRandom,
} from '../../src/lib/index.ts';
import { type Pod, podUid, type QosClass, qosClass } from '../../src/pods/index.ts';
import {
  CgroupManager,
  enforceReservedCgroups,
  hostProcesses,
  PodContainerManager,
  QosContainerManager,
  reservedCgroups,
  SystemCgroups,
} from '../../src/resources/index.ts';
import { RecordedJournal } from '../fakes/journal.ts';
import { aPod } from '../fakes/pods.ts';
import { eventually } from '../kubeling-node.ts';

const amount = { cpu: '100m', memory: '100Mi' };
const guaranteed = podWith(
  '11111111-aaaa-4bbb-8ccc-000000000001',
  { requests: amount, limits: amount },
  {
    overhead: { cpu: '200m', memory: '140Mi' },
  },
);
const burstable = podWith('11111111-aaaa-4bbb-8ccc-000000000002', {
  requests: { cpu: '250m', memory: '32Mi' },
  limits: { memory: '64Mi' },
});
const bestEffort = podWith('11111111-aaaa-4bbb-8ccc-000000000003', {});

function podWith(uid: string, resources: object, spec: object = {}): Pod {
  const containers = [{ name: 'main', image: 'x', resources }];
  return aPod({ metadata: { uid: podUid(uid) }, spec: { containers, ...spec } });
}

const host = realCgroupHost();
const layout = await detectCgroupLayout(host);
const skip =
  process.getuid?.() !== 0 ? 'needs root' : layout.version === 2 ? 'written for cgroups v1' : false;

describe('pod cgroups on a real cgroup v1 node', { skip }, () => {
  const signal = new AbortController().signal;
  const clock = realClock();
  const { logger } = collectLogs(clock);
  const root = [`klgtest-${randomHex(systemRandom(), 6)}`];
  const active = [guaranteed, burstable, bestEffort];
  const cgroups = new CgroupManager({ host, layout, driver: 'cgroupfs', clock });
  const kubepods = { cpuShares: 2048, memoryBytes: 1_073_741_824, pidsLimit: 5000 };
  const hugePageSizes = ['2MB', '1GB'];
  const deps = {
    cgroups,
    cgroupRoot: root,
    kubepods,
    hugePageSizes,
    activePods: (quality: QosClass) => active.filter((pod) => qosClass(pod) === quality),
    clock,
    logger,
  };
  const qos = new QosContainerManager(deps);
  const settings = { cpuCfsQuota: true, cpuCfsQuotaPeriodUs: 100_000, podPidsLimit: 1024, hugePageSizes };
  const journal = new RecordedJournal();
  const pods = new PodContainerManager({ cgroups, qos, settings, journal, logger });

  before(async () => {
    await cgroups.create(root, {}, signal);
    await qos.start(signal);
    for (const pod of active) await pods.ensureExists(pod, signal);
  });
  after(() => cgroups.destroy(root, signal));

  /** Returns the content of the cgroup files by controller, path below kubepods and file name. */
  async function held(where: readonly (readonly [string, string, string])[]): Promise<string[]> {
    const roots = layout.version === 1 ? layout.controllers : new Map<string, string>();
    const files = where.map(
      ([controller, path, file]) => `${roots.get(controller)}/${root}/kubepods${path}/${file}`,
    );
    return await Promise.all(files.map(async (file) => (await readFile(file, 'utf8')).trim()));
  }

  const guaranteedPath = `/pod${guaranteed.metadata.uid}`;
  const burstablePath = `/burstable/pod${burstable.metadata.uid}`;
  const bestEffortPath = `/besteffort/pod${bestEffort.metadata.uid}`;
  const unlimited = '9223372036854771712';

  const expected: readonly (readonly [string, string, string, string])[] = [
    ['cpu', '', 'cpu.shares', '2048'],
    ['cpu', '', 'cpu.cfs_quota_us', '-1'],
    ['memory', '', 'memory.limit_in_bytes', '1073741824'],
    ['pids', '', 'pids.max', '5000'],
    ['cpu', '/burstable', 'cpu.shares', '256'],
    ['cpu', '/besteffort', 'cpu.shares', '2'],
    ['memory', '/besteffort', 'memory.limit_in_bytes', unlimited],
    ['cpu', guaranteedPath, 'cpu.shares', '307'],
    ['cpu', guaranteedPath, 'cpu.cfs_quota_us', '30000'],
    ['cpu', guaranteedPath, 'cpu.cfs_period_us', '100000'],
    ['memory', guaranteedPath, 'memory.limit_in_bytes', '251658240'],
    ['pids', guaranteedPath, 'pids.max', '1024'],
    ['cpu', burstablePath, 'cpu.shares', '256'],
    ['cpu', burstablePath, 'cpu.cfs_quota_us', '-1'],
    ['memory', burstablePath, 'memory.limit_in_bytes', '67108864'],
    ['cpu', bestEffortPath, 'cpu.shares', '2'],
    ['cpu', bestEffortPath, 'cpu.cfs_quota_us', '-1'],
    ['memory', bestEffortPath, 'memory.limit_in_bytes', unlimited],
  ];

  it('pod cgroups contain the values that the Go kubelet writes', async () => {
    const values = await held(expected.map(([controller, path, file]) => [controller, path, file]));
    const read = expected.map(([controller, path, file], index) => [controller, path, file, values[index]]);
    assert.deepEqual(read, expected);
    assert.deepEqual([journal.events, journal.steps], [[], []]);
  });

  it('pod cgroups exist in every controller hierarchy and in no other directory', async () => {
    for (const tree of cgroupRoots(layout)) {
      const type = await host.fsType(`${tree}${pods.cgroupParent(bestEffort)}`);
      assert.ok(type === cgroupMagic.v1 || type === cgroupMagic.v2, tree);
    }
  });

  it('pod cgroups have the CPUs and memory nodes that processes require', async () => {
    const [cpus, mems] = await held([
      ['cpuset', bestEffortPath, 'cpuset.cpus'],
      ['cpuset', bestEffortPath, 'cpuset.mems'],
    ]);
    assert.notEqual(cpus, '');
    assert.notEqual(mems, '');
  });

  it('pod cgroups are mapped back to their pods', async () => {
    assert.deepEqual(
      [...(await pods.list()).keys()].toSorted(),
      active.map((pod) => pod.metadata.uid).toSorted(),
    );
  });

  it('pod cgroups are updated after a change of the pod spec', async () => {
    const more = { cpu: '1', memory: '128Mi' };
    const grown = podWith(guaranteed.metadata.uid, { requests: more, limits: more });
    await pods.set(grown, pods.wanted(grown), signal);
    assert.deepEqual(await pods.current(grown), pods.wanted(grown));
    const files = ['cpu.shares', 'cpu.cfs_quota_us'].map((file) => ['cpu', guaranteedPath, file] as const);
    assert.deepEqual(await held([...files, ['memory', guaranteedPath, 'memory.limit_in_bytes']]), [
      '1024',
      '100000',
      '134217728',
    ]);
    await pods.set(grown, { cpuQuotaUs: -1, memoryBytes: -1 }, signal);
    assert.deepEqual(await pods.current(grown), { ...pods.wanted(grown), cpuQuotaUs: -1, memoryBytes: -1 });
  });

  it('the limit of all pods together is set to node allocatable, and setting it is retried while their usage exceeds it', async () => {
    const reported: string[] = [];
    const kubepodsFile = (file: string) =>
      `${layout.version === 1 ? layout.controllers.get('memory') : ''}/${root}/kubepods/${file}`;
    const enforced = (memoryBytes: number) =>
      new QosContainerManager({
        ...deps,
        kubepods: { ...kubepods, memoryBytes },
        enforcement: {
          enforced: () => void reported.push('enforced'),
          failed: (cgroup, error) => void reported.push(`${cgroup}: ${(error as Error).message}`),
        },
      }).start(signal);
    // The kernel cannot reclaim the memory of this process, so it rejects a limit below the current
    // usage.
    const child = spawn(process.execPath, [
      '-e',
      'process.stdin.on("data", () => { globalThis.kept = Buffer.alloc(64e6, 1); })',
    ]);
    try {
      await cgroups.attach([...pods.nameOf(bestEffort)], child.pid ?? 0);
      // Memory allocated before the process joined the cgroup is not charged to it.
      child.stdin.write('now');
      await eventually('memory that is in use', async () =>
        Number(await readFile(kubepodsFile('memory.usage_in_bytes'), 'utf8')) > 64e6 ? true : undefined,
      );
      await enforced(8_388_608);
      assert.match(
        reported[0] ?? '',
        /kubepods: Cannot set .*memory\.limit_in_bytes to 8388608 as more is in use/,
      );
    } finally {
      child.kill('SIGKILL');
    }
    await once(child, 'exit');
    await enforced(536_870_912);
    assert.deepEqual(reported.slice(1), ['enforced']);
    assert.equal((await readFile(kubepodsFile('memory.limit_in_bytes'), 'utf8')).trim(), '536870912');
  });

  it('the system-reserved cgroup is limited to its reservation', async () => {
    const path = `/${root}/reserved`;
    const config = {
      systemReserved: { cpu: '250m', memory: '64Mi', pid: '50' },
      kubeReserved: {},
      systemReservedCgroup: path,
      kubeReservedCgroup: '',
      enforceNodeAllocatable: ['pods', 'system-reserved'],
    };
    const events: string[] = [];
    const enforce = () =>
      enforceReservedCgroups(
        cgroups,
        reservedCgroups(config),
        ({ reason }) => void events.push(reason),
        signal,
      );
    await assert.rejects(enforce(), { code: 'RESERVED_CGROUP' });
    await cgroups.create([...root, 'reserved'], {}, signal);
    await enforce();
    assert.deepEqual(events, ['FailedNodeAllocatableEnforcement', 'NodeAllocatableEnforced']);
    const roots = layout.version === 1 ? layout.controllers : new Map<string, string>();
    const read = async (controller: string, file: string) =>
      (await readFile(`${roots.get(controller)}${path}/${file}`, 'utf8')).trim();
    assert.deepEqual(
      [
        await read('cpu', 'cpu.shares'),
        await read('memory', 'memory.limit_in_bytes'),
        await read('pids', 'pids.max'),
      ],
      ['256', '67108864', '50'],
    );
  });

  it('system processes are moved to the configured cgroup', async () => {
    const child = spawn('sleep', ['600'], { stdio: 'ignore' });
    const pid = child.pid ?? 0;
    const from = [...root, 'from'];
    await cgroups.create(from, {}, signal);
    await cgroups.attach(from, pid);
    // Overrides the check that the process belongs to the host, because the check requires the
    // right to inspect process 1.
    const processes = { ...hostProcesses(), isOfHost: async () => true, ownPid: pid };
    const mover = { cgroups, processes, clock, logger, root: from };
    await new SystemCgroups({ ...mover, system: `/${root}/moved` }).move(signal);
    assert.deepEqual([await cgroups.members(from), await cgroups.members([...root, 'moved'])], [[], [pid]]);
    await new SystemCgroups({ ...mover, own: `/${root}/own` }).move(signal);
    assert.deepEqual(await cgroups.members([...root, 'own']), [pid]);
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  });

  it('pod cgroups are removed together with their processes and child cgroups', async () => {
    const child = spawn('sleep', ['600'], { stdio: 'ignore' });
    const ended = once(child, 'exit');
    const tree = layout.version === 1 ? layout.controllers.get('memory') : undefined;
    const container = [...pods.nameOf(burstable), 'container'];
    await cgroups.create(container, {}, signal);
    await writeFile(`${tree}${cgroups.path(container)}/cgroup.procs`, String(child.pid));
    assert.deepEqual(await cgroups.pids(pods.nameOf(burstable)), [child.pid]);
    const gone = await pods.removeOrphans(
      { mayRun: (uid) => uid !== burstable.metadata.uid, hasVolumes: () => false },
      signal,
    );
    assert.deepEqual(gone, [burstable.metadata.uid]);
    assert.deepEqual(await ended, [null, 'SIGKILL']);
    assert.equal(await pods.exists(burstable), false);
  });

  it('pod cgroups are created within a few milliseconds', async () => {
    const startMs = clock.monotonicMs();
    assert.equal(await pods.ensureExists(burstable, signal), 'created');
    const tookMs = clock.monotonicMs() - startMs;
    assert.ok(tookMs < 1000, `took ${tookMs} ms`);
  });
});
