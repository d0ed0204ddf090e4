import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { aPod } from '../../../test/fakes/pods.ts';
import type { Container, PodSpec, ResourceRequirements } from '../../kinds/index.ts';
import {
  containerResources,
  type LinuxNode,
  oomScoreAdj,
  overheadResources,
  sandboxResources,
} from './linux-resources.ts';

const Gi = 1024n ** 3n;
const node: LinuxNode = {
  cgroups: 'v1',
  memoryCapacity: 10n * Gi,
  swapCapacity: 0n,
  swapController: 'absent',
  swapBehavior: 'NoSwap',
  hugePageSizes: [],
  cpuQuota: 'enforced',
  cpuPeriodUs: 100_000n,
  oomKills: 'container',
};
const c = (resources?: ResourceRequirements, parts: Partial<Container> = {}): Container => ({
  name: 'main',
  resources,
  ...parts,
});
const made = (resources: ResourceRequirements, spec: Partial<PodSpec> = {}, on: Partial<LinuxNode> = {}) => {
  const container = c(resources);
  return containerResources(aPod({ spec: { containers: [container], ...spec } }), container, {
    ...node,
    ...on,
  });
};

const cpu: readonly [string, ResourceRequirements, shares: bigint, quota: bigint][] = [
  ['no requests or limits', {}, 2n, 0n],
  ['only a request', { requests: { cpu: '250m' } }, 256n, 0n],
  ['only a limit', { limits: { cpu: '500m' } }, 512n, 50_000n],
  ['a zero request with a limit', { requests: { cpu: '0' }, limits: { cpu: '1' } }, 2n, 100_000n],
  ['both', { requests: { cpu: '1' }, limits: { cpu: '2' } }, 1024n, 200_000n],
  ['very little', { requests: { cpu: '1m' }, limits: { cpu: '1m' } }, 2n, 1_000n],
];
for (const [what, resources, shares, quota] of cpu) {
  test(`CPU resources of a container: ${what}`, () => {
    const { cpuShares, cpuQuota, cpuPeriod } = made(resources);
    assert.deepEqual([cpuShares, cpuQuota, cpuPeriod], [shares, quota, 100_000n]);
  });
}

test('sets neither CPU quota nor period when CPU quotas are disabled', () => {
  const { cpuQuota, cpuPeriod } = made({ limits: { cpu: '1' } }, {}, { cpuQuota: 'off' });
  assert.deepEqual([cpuQuota, cpuPeriod], [undefined, undefined]);
});

test('sets no CPU quota for containers with exclusive CPUs', () => {
  const container = c({ limits: { cpu: '2' } });
  const grants = { exclusiveCpus: true, cpusetCpus: '2-3' };
  const { cpuQuota, cpusetCpus } = containerResources(
    aPod({ spec: { containers: [container] } }),
    container,
    node,
    grants,
  );
  assert.deepEqual([cpuQuota, cpusetCpus], [-1n, '2-3']);
});

test('a container without limits gets the limits of its pod', () => {
  const whole = { resources: { limits: { cpu: '2', memory: '1Gi' } } };
  const { cpuQuota, memoryLimitInBytes, cpuShares } = made({}, whole);
  assert.deepEqual([cpuQuota, memoryLimitInBytes, cpuShares], [200_000n, Gi, 2048n]);
  assert.equal(made({ limits: { memory: '512Mi' } }, whole).memoryLimitInBytes, Gi / 2n);
});

test('limits every huge page size of a container, to zero unless requested', () => {
  const sizes = { hugePageSizes: ['2MB', '1GB', '64KB'] };
  const { hugepageLimits } = made({ limits: { 'hugepages-2Mi': '100Mi' } }, {}, sizes);
  assert.deepEqual(hugepageLimits, [
    { pageSize: '2MB', limit: 104_857_600n },
    { pageSize: '1GB', limit: 0n },
    { pageSize: '64KB', limit: 0n },
  ]);
  const whole = { resources: { limits: { 'hugepages-1Gi': '2Gi' } } };
  assert.equal(made({}, whole, sizes).hugepageLimits?.[1]?.limit, 2n * Gi);
});

test('enables memory.oom.group on cgroup v2 unless single-process OOM kill is configured', () => {
  assert.deepEqual(made({}).unified, {});
  assert.deepEqual(made({}, {}, { cgroups: 'v2' }).unified, { 'memory.oom.group': '1' });
  assert.deepEqual(made({}, {}, { cgroups: 'v2', oomKills: 'process' }).unified, {});
});

const v2 = { cgroups: 'v2', oomKills: 'process', swapController: 'present', swapCapacity: 2n * Gi } as const;
const swaps: readonly [string, ResourceRequirements, Partial<LinuxNode>, string][] = [
  ['no swap with NoSwap', { requests: { memory: '1Gi' } }, v2, '0'],
  [
    'a share in proportion to the memory request',
    { requests: { memory: '5Gi' } },
    { ...v2, swapBehavior: 'LimitedSwap' },
    `${Gi}`,
  ],
  [
    'no swap when the request equals the limit',
    { requests: { memory: '1Gi' }, limits: { memory: '1Gi' } },
    { ...v2, swapBehavior: 'LimitedSwap' },
    '0',
  ],
  [
    'no swap without a memory request',
    { requests: { cpu: '1' } },
    { ...v2, swapBehavior: 'LimitedSwap' },
    '0',
  ],
];
for (const [what, resources, on, expected] of swaps) {
  test(`swap limit of a container: ${what}`, () =>
    assert.equal(made(resources, {}, on).unified?.['memory.swap.max'], expected));
}

test('on cgroup v1 the swap limit equals the memory limit, if the kernel can limit swap', () => {
  const limits = { limits: { memory: '1Gi' } };
  assert.equal(made(limits, {}, { swapController: 'present' }).memorySwapLimitInBytes, Gi);
  assert.equal(made(limits).memorySwapLimitInBytes, undefined);
});

test('a critical pod gets no swap', () => {
  const spec = { priority: 2_000_000_000 };
  assert.equal(
    made({ requests: { memory: '5Gi' } }, spec, { ...v2, swapBehavior: 'LimitedSwap' }).unified?.[
      'memory.swap.max'
    ],
    '0',
  );
});

test("a sandbox gets the sum of its containers' resources, and the overhead separately", () => {
  const pod = aPod({
    spec: {
      containers: [
        c({ requests: { cpu: '1' }, limits: { cpu: '1', memory: '1Gi' } }),
        c({ limits: { cpu: '1', memory: '1Gi' } }),
      ],
      overhead: { cpu: '200m', memory: '128Mi' },
    },
  });
  const sandbox = sandboxResources(pod, node);
  assert.deepEqual(
    [sandbox.cpuShares, sandbox.cpuQuota, sandbox.memoryLimitInBytes],
    [1024n, 200_000n, 2n * Gi],
  );
  const overhead = overheadResources(pod, node);
  assert.deepEqual(
    [overhead.cpuShares, overhead.cpuQuota, overhead.memoryLimitInBytes],
    [204n, 20_000n, Gi / 8n],
  );
  assert.deepEqual(overheadResources(aPod(), node), {});
});

const request = (memory: string, parts: Partial<Container> = {}) => c({ requests: { memory } }, parts);
const scores: readonly [string, Partial<PodSpec>, bigint][] = [
  ['no requests', { containers: [c()] }, 1000n],
  [
    'guaranteed',
    { containers: [c({ requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '1', memory: '1Gi' } })] },
    -997n,
  ],
  [
    'a node-critical pod',
    { containers: [c()], priority: 2_000_001_000, priorityClassName: 'system-node-critical' },
    -997n,
  ],
  [
    'a cluster-critical pod',
    { containers: [c()], priority: 2_000_000_000, priorityClassName: 'system-cluster-critical' },
    1000n,
  ],
  ['a request of a tenth of the memory', { containers: [request('1Gi')] }, 900n],
  ['a request of half of the memory', { containers: [request('5Gi')] }, 500n],
  ['a tiny request', { containers: [request('1Mi')] }, 999n],
  ['CPU only', { containers: [c({ requests: { cpu: '1' } })] }, 999n],
  ['a request of all of the memory', { containers: [request('10Gi')] }, 3n],
  [
    "a pod-level request beyond the containers' requests",
    { containers: [request('1Gi'), request('1Gi')], resources: { requests: { memory: '4Gi' } } },
    800n,
  ],
];
for (const [what, spec, expected] of scores) {
  test(`oom_score_adj of a container: ${what}`, () => {
    const pod = aPod({ spec });
    assert.equal(oomScoreAdj(pod, pod.spec.containers[0] ?? c(), node.memoryCapacity), expected);
  });
}

test('a sidecar never has a higher oom_score_adj than the regular containers', () => {
  const sidecar = request('1Mi', { name: 'sidecar', restartPolicy: 'Always' });
  const pod = aPod({
    spec: { containers: [request('2Gi'), request('5Gi', { name: 'b' })], initContainers: [sidecar] },
  });
  assert.equal(oomScoreAdj(pod, sidecar, node.memoryCapacity), 800n);
});

test('burstable containers have an oom_score_adj between guaranteed and best-effort ones', () => {
  fc.assert(
    fc.property(fc.bigInt(1n, 100n * Gi), fc.bigInt(1n, 100n * Gi), (asked, capacity) => {
      const container = request(`${asked}`);
      const score = oomScoreAdj(aPod({ spec: { containers: [container] } }), container, capacity);
      assert.ok(score >= 3n && score <= 999n);
    }),
  );
});
