import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import { anInstance, observe } from '../../../test/fakes/runtime-view.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import type { Container, PodSpec, ResourceRequirements } from '../../kinds/index.ts';
import { collectLogs, KubelingError } from '../../lib/index.ts';
import { effectiveAllocation, type Pod } from '../../pods/index.ts';
import { type LinuxNode, overheadResources, resizedResources } from '../containers/linux-resources.ts';
import { memoryActuated } from './actuated-resources.ts';
import type { PodLimits } from './pod-limits.ts';
import { PodResizer } from './pod-resizer.ts';
import { isResizeInProgress, planResize } from './resize-plan.ts';

const mebibyte = 2 ** 20;
const signal = new AbortController().signal;
const node: LinuxNode = {
  cgroups: 'v2',
  memoryCapacity: 8n << 30n,
  swapCapacity: 0n,
  swapController: 'absent',
  swapBehavior: 'NoSwap',
  hugePageSizes: ['2MB'],
  cpuQuota: 'enforced',
  cpuPeriodUs: 100_000n,
  oomKills: 'container',
};

/**
 * A pod with one container per name, whose requests and limits are the given millicores and
 * mebibytes.
 */
function podOf(
  amounts: Readonly<Record<string, readonly [number, number]>>,
  spec: Partial<PodSpec> = {},
): Pod {
  const containers = Object.entries(amounts).map(([name, [cpu, memory]]): Container => {
    const list = { ...(cpu > 0 && { cpu: `${cpu}m` }), ...(memory > 0 && { memory: `${memory}Mi` }) };
    return { name, image: 'i', resources: { requests: list, limits: list } };
  });
  return aPod({ spec: { containers, ...spec } });
}

function sum(pod: Pod): PodLimits {
  const amount = (resources: ResourceRequirements = {}, name: string) =>
    Number.parseInt(resources.limits?.[name] ?? '0', 10);
  const total = (name: string) =>
    pod.spec.containers.reduce((all, { resources }) => all + amount(resources, name), 0);
  const isHeld = (name: string) => pod.spec.containers.every(({ resources }) => amount(resources, name) > 0);
  return {
    cpuShares: Math.floor((total('cpu') * 1024) / 1000),
    cpuQuotaUs: isHeld('cpu') ? total('cpu') * 100 : -1,
    cpuPeriodUs: 100_000,
    memoryBytes: isHeld('memory') ? total('memory') * mebibyte : -1,
  };
}

interface RigOptions {
  /** Memory usage of containers in mebibytes. */
  readonly used?: Readonly<Record<string, number>>;
  readonly usedByPod?: number;
  readonly sandbox?: Error;
  /** Limits of the pod's cgroup; by default the sum of its containers' limits. */
  readonly wanted?: (pod: Pod) => PodLimits;
  readonly fails?: (call: string) => boolean;
  /** Creation time of the containers; by default before this process started. */
  readonly createdAtNs?: bigint;
  /** Error code with which the calls selected by `fails` reject. */
  readonly code?: 'CRI_FAILED' | 'CRI_DEADLINE';
}

/** Resizes a running pod from `before` to `after` and records all calls to runtime and cgroup. */
async function resized(
  before: Pod,
  after: Pod,
  {
    used = {},
    usedByPod = 0,
    sandbox,
    wanted = sum,
    fails,
    code = 'CRI_FAILED',
    createdAtNs = 0n,
  }: RigOptions = {},
) {
  const calls: string[] = [];
  const seen = (call: string) => {
    calls.push(call);
    if (fails?.(call) === true) throw new KubelingError(code, `${call} failed`);
  };
  const clock = new VirtualClock();
  let limits = sum(before);
  const actuated = memoryActuated();
  await actuated.set(before.metadata.uid, effectiveAllocation(before));
  const resizer = new PodResizer({
    clock,
    logger: collectLogs(clock).logger,
    actuated,
    allocationPersisted: async () => void calls.push('kept'),
    planner: {
      updatedResources: (pod, container, lifted) => resizedResources(pod, container, node, lifted),
      overheadResources: (pod) => overheadResources(pod, node),
    },
    cri: {
      async updateContainerResources({ containerId, linux }) {
        const { cpuShares, cpuQuota, memoryLimitInBytes } = linux ?? {};
        seen(`${containerId} ${cpuShares} ${cpuQuota} ${Number(memoryLimitInBytes) / mebibyte}`);
        assert.equal(linux?.hugepageLimits, undefined);
        return {};
      },
      async updatePodSandboxResources({ resources }) {
        if (sandbox !== undefined) throw sandbox;
        const { cpuShares, cpuQuota, memoryLimitInBytes } = resources ?? {};
        seen(`sandbox ${cpuShares} ${cpuQuota} ${Number(memoryLimitInBytes) / mebibyte}`);
        return {};
      },
      async containerStats({ containerId = '' }) {
        const bytes = BigInt(used[containerId] ?? 0) * BigInt(mebibyte);
        return { stats: { memory: { usageBytes: { value: bytes } } } } as never;
      },
    },
    limits: {
      wanted: wanted,
      current: async () => limits,
      async set(_pod, part) {
        seen(
          `pod ${Object.entries(part)
            .map(
              ([name, value]) => `${name} ${name === 'memoryBytes' && value > 0 ? value / mebibyte : value}`,
            )
            .join(' ')}`,
        );
        limits = { ...limits, ...part };
      },
      memoryUsage: async () => usedByPod * mebibyte,
      changed: async () => {},
    },
  });
  const observed = observe(
    after,
    after.spec.containers.map(({ name }) => anInstance({ id: name, name, state: 'running', createdAtNs })),
  );
  const record = () => actuated.get(after.metadata.uid);
  const plan = planResize(after, observed, record(), { starting: new Set(), stopping: new Set() });
  assert.ok(plan !== undefined);
  const action = await resizer.resize(
    { pod: after, plan, sandboxId: 's', actuated: effectiveAllocation(before) },
    signal,
  );
  const isOver = !isResizeInProgress(after, observed, record());
  /** Calls made by `reapplyUnconfirmed` after the given time. */
  const confirmed = async (ms: number, pod = after) => {
    await clock.advance(ms);
    calls.length = 0;
    await resizer.reapplyUnconfirmed(pod, observed, signal);
    return [...calls];
  };
  return { calls, failure: action.failure?.message, limits: () => limits, isOver, confirmed };
}

test("resizes memory before CPU, lowers limits before raising others, and raises the pod's cgroup before its containers", async () => {
  const { calls, isOver } = await resized(
    podOf({ a: [100, 100], b: [200, 200], c: [300, 300] }),
    podOf({ a: [200, 150], b: [300, 250], c: [250, 200] }),
  );
  assert.deepEqual(calls, [
    'kept',
    // The pod's total memory is unchanged, so only the memory of containers is updated before CPU.
    'c 307 30000 200',
    'a 102 10000 150',
    'b 204 20000 250',
    'sandbox 614 75000 600',
    'pod cpuQuotaUs 75000 cpuPeriodUs 100000',
    'sandbox 768 75000 600',
    'pod cpuShares 768',
    'c 256 25000 200',
    'a 204 20000 150',
    'b 307 30000 250',
  ]);
  assert.ok(isOver);
});

test("lowers the limits of the pod's cgroup only after those of its containers", async () => {
  const { calls, limits } = await resized(podOf({ a: [200, 200] }), podOf({ a: [100, 100] }));
  assert.deepEqual(calls, [
    'kept',
    'a 204 20000 100',
    'sandbox 204 20000 100',
    'pod memoryBytes 100',
    'a 102 10000 100',
    'sandbox 102 20000 100',
    'pod cpuShares 102',
    'sandbox 102 10000 100',
    'pod cpuQuotaUs 10000 cpuPeriodUs 100000',
  ]);
  assert.deepEqual(limits(), sum(podOf({ a: [100, 100] })));
});

test('a resize that adds or removes pod-level resources completes', async () => {
  const [without, given] = [{}, { resources: { requests: { cpu: '200m' } } }].map((spec) =>
    podOf({ a: [100, 100] }, spec),
  ) as [Pod, Pod];
  assert.ok((await resized(without, given)).isOver);
  assert.ok((await resized(given, without)).isOver);
});

test("removes the limit from the runtime when a resize drops the container's limit", async () => {
  const unlimited = (pod: Pod): Pod => ({
    ...pod,
    spec: {
      ...pod.spec,
      containers: pod.spec.containers.map((each) => ({
        ...each,
        resources: { requests: each.resources?.requests },
      })),
    },
  });
  const before = podOf({ a: [100, 100] });
  const { calls, limits } = await resized(before, unlimited(before));
  assert.deepEqual(calls, [
    'kept',
    `sandbox 102 10000 ${-1 / mebibyte}`,
    'pod memoryBytes -1',
    `a 102 10000 ${-1 / mebibyte}`,
    `sandbox 102 -1 ${-1 / mebibyte}`,
    'pod cpuQuotaUs -1 cpuPeriodUs 100000',
    // This call changes no memory limit, because an earlier call removed the limit.
    'a 102 -1 0',
    `sandbox 0 -1 ${-1 / mebibyte}`,
    'pod cpuShares 0',
  ]);
  assert.deepEqual([limits().cpuQuotaUs, limits().memoryBytes], [-1, -1]);
});

test("applies new pod-level resources to the pod's cgroup", async () => {
  const before = podOf({ a: [100, 100] });
  const limits = { cpu: '300m', memory: '300Mi' };
  const after = { ...before, spec: { ...before.spec, resources: { requests: limits, limits } } };
  const { calls, isOver } = await resized(before, after, { wanted: () => sum(podOf({ a: [300, 300] })) });
  assert.deepEqual(calls, [
    'kept',
    'sandbox 102 10000 300',
    'pod memoryBytes 300',
    'sandbox 102 30000 300',
    'pod cpuQuotaUs 30000 cpuPeriodUs 100000',
    'sandbox 307 30000 300',
    'pod cpuShares 307',
  ]);
  assert.ok(isOver);
});

test('changes no resources when a memory limit would be below the usage', async () => {
  const [before, after] = [podOf({ a: [100, 200], b: [100, 200] }), podOf({ a: [50, 100], b: [100, 100] })];
  const { calls, failure, isOver } = await resized(before, after, {
    used: { a: 150, b: 10 },
    usedByPod: 210,
  });
  assert.deepEqual(calls, ['kept']);
  assert.equal(
    failure,
    'cannot decrease memory limits: [attempting to set pod memory limit (209715200) below current usage (220200960), attempting to set container "a" memory limit (104857600) below current usage (157286400)]',
  );
  assert.ok(!isOver);
});

test('resizes a pod although the runtime does not implement UpdatePodSandboxResources', async () => {
  for (const error of [
    new KubelingError('CRI_UNSUPPORTED', 'unknown method'),
    new KubelingError('CRI_FAILED', 'not implemented yet'),
  ]) {
    const { failure, isOver } = await resized(podOf({ a: [1, 100] }), podOf({ a: [1, 50] }), {
      sandbox: error,
    });
    assert.deepEqual([failure, isOver], [undefined, true]);
  }
  const refusing = new KubelingError('CRI_FAILED', 'no');
  const { failure } = await resized(podOf({ a: [1, 50] }), podOf({ a: [1, 100] }), { sandbox: refusing });
  assert.equal(failure, 'no');
});

test("restores the sandbox's resources in the runtime when the update of the pod's cgroup fails", async () => {
  const { calls, failure } = await resized(podOf({ a: [100, 50] }), podOf({ a: [100, 100] }), {
    fails: (call) => call.startsWith('pod '),
  });
  assert.equal(failure, 'pod memoryBytes 100 failed');
  assert.deepEqual(calls, ['kept', 'sandbox 102 10000 100', 'pod memoryBytes 100', 'sandbox 102 10000 50']);
});

test("does not record resources as applied when the runtime's update failed", async () => {
  const { calls, failure, isOver } = await resized(
    podOf({ a: [100, 100], b: [100, 100] }),
    podOf({ a: [100, 50], b: [100, 50] }),
    { fails: (call) => call.startsWith('b ') },
  );
  assert.deepEqual(calls, ['kept', 'a 102 10000 50', 'b 102 10000 50']);
  assert.equal(failure, 'b 102 10000 50 failed');
  assert.ok(!isOver);
});

test('reapplies recorded resources two minutes after an update with unknown outcome', async () => {
  const outcomes = [true, false];
  const fails = (call: string) => call.startsWith('a ') && outcomes.shift() === true;
  const { failure, confirmed } = await resized(podOf({ a: [100, 10] }), podOf({ a: [200, 10] }), {
    fails,
    code: 'CRI_DEADLINE',
  });
  assert.match(failure ?? '', /failed/);
  assert.deepEqual(await confirmed(119_000), []);
  assert.deepEqual(await confirmed(1_000), ['a 102 10000 10'], 'the recorded resources');
  assert.deepEqual(await confirmed(3_600_000), []);
});

test("removes a container's limit again when an update with unknown outcome may have set it", async () => {
  const outcomes = [true];
  const fails = (call: string) => call.startsWith('a ') && outcomes.shift() === true;
  const options = { fails, code: 'CRI_DEADLINE' } as const;
  const { confirmed } = await resized(podOf({ a: [0, 0] }), podOf({ a: [100, 100] }), options);
  assert.deepEqual(await confirmed(120_000), [`a 2 -1 ${-1 / mebibyte}`]);
});

test('does not reapply resources after an update that the runtime rejected', async () => {
  const { confirmed } = await resized(podOf({ a: [100, 10] }), podOf({ a: [200, 10] }), {
    fails: (call) => call.startsWith('a '),
  });
  assert.deepEqual(await confirmed(3_600_000), []);
});

test('reapplies resources of containers in pods that were edited before this kubelet started', async () => {
  const after = podOf({ a: [200, 10] });
  const { confirmed } = await resized(podOf({ a: [100, 10] }), after);
  const edited = { ...after, metadata: { ...after.metadata, generation: 2 } };
  assert.deepEqual(await confirmed(0, edited), []);
  assert.deepEqual(await confirmed(120_000, edited), ['a 204 20000 10']);
  assert.deepEqual(await confirmed(3_600_000, edited), []);
});

test('does not reapply resources of a container created after this kubelet started', async () => {
  const after = podOf({ a: [200, 10] });
  const { confirmed } = await resized(podOf({ a: [100, 10] }), after, { createdAtNs: 1n << 62n });
  const edited = { ...after, metadata: { ...after.metadata, generation: 2 } };
  assert.deepEqual(await confirmed(0, edited), []);
  assert.deepEqual(await confirmed(120_000, edited), []);
});
