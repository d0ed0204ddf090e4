import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { aPod } from '../../test/fakes/pods.ts';
import type { Container, PodSpec, ResourceRequirements } from '../kinds/index.ts';
import { formatQuantity } from '../lib/index.ts';
import { type QosClass, qosClass } from './qos.ts';
import {
  cpuQuotaUs,
  cpuShares,
  podLimits,
  podRequests,
  quotaUsToMilliCpu,
  type ResourceList,
  sharesToMilliCpu,
} from './resources.ts';

const c = (resources: ResourceRequirements = {}, parts: Partial<Container> = {}): Container => ({
  name: 'c',
  resources,
  ...parts,
});
const both = (cpu: string, memory: string): ResourceRequirements => ({
  requests: { cpu, memory },
  limits: { cpu, memory },
});
const written = (list: ResourceList) =>
  Object.fromEntries(Array.from(list, ([name, amount]) => [name, formatQuantity(amount)]));

const classes: readonly [string, Partial<PodSpec>, QosClass][] = [
  ['there are no requests', { containers: [c(), c()] }, 'BestEffort'],
  ['all requests are zero', { containers: [c(both('0', '0'))] }, 'BestEffort'],
  [
    'only other resources are requested',
    { containers: [c({ limits: { 'example.com/gpu': '1' } })] },
    'BestEffort',
  ],
  ['only an ephemeral container has requests', { ephemeralContainers: [c(both('1', '1Gi'))] }, 'BestEffort'],
  [
    'all requests equal their limits',
    { containers: [c(both('1', '1Gi')), c(both('2', '2Gi'))] },
    'Guaranteed',
  ],
  [
    'equal amounts are spelled differently',
    {
      containers: [c({ requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '1000m', memory: '1024Mi' } })],
    },
    'Guaranteed',
  ],
  [
    'a request is lower than its limit',
    { containers: [c({ requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '2', memory: '1Gi' } })] },
    'Burstable',
  ],
  ['memory has no limit', { containers: [c({ requests: { cpu: '1' }, limits: { cpu: '1' } })] }, 'Burstable'],
  ['one container has no limits', { containers: [c(both('1', '1Gi')), c()] }, 'Burstable'],
  [
    'an init container has no limits',
    { containers: [c(both('1', '1Gi'))], initContainers: [c()] },
    'Burstable',
  ],
  [
    'an init container has limits too',
    { containers: [c(both('1', '1Gi'))], initContainers: [c(both('1', '1Gi'))] },
    'Guaranteed',
  ],
  ['the pod has pod-level limits', { containers: [c()], resources: both('1', '1Gi') }, 'Guaranteed'],
  [
    'the pod has pod-level requests only',
    { containers: [c(both('1', '1Gi'))], resources: { requests: { cpu: '1' } } },
    'Burstable',
  ],
];
for (const [what, spec, expected] of classes) {
  test(`the QoS class of a pod is ${expected} when ${what}`, () =>
    assert.equal(qosClass(aPod({ spec })), expected));
}

test('keeps the published QoS class of a pod', () => {
  assert.equal(qosClass(aPod({ status: { qosClass: 'Guaranteed' } })), 'Guaranteed');
});

const sums: readonly [string, Partial<PodSpec>, requests: object, limits: object][] = [
  [
    'regular containers are summed up',
    { containers: [c(both('1', '1Gi')), c(both('500m', '1Gi'))] },
    { cpu: '1500m', memory: '2Gi' },
    { cpu: '1500m', memory: '2Gi' },
  ],
  [
    'a large init container counts alone',
    { containers: [c(both('1', '1Gi'))], initContainers: [c(both('3', '512Mi'))] },
    { cpu: '3', memory: '1Gi' },
    { cpu: '3', memory: '1Gi' },
  ],
  [
    'sidecars are added to regular containers and to later init containers',
    {
      containers: [c(both('1', '1Gi'))],
      initContainers: [
        c(both('4', '1Gi')),
        c(both('1', '1Gi'), { restartPolicy: 'Always' }),
        c(both('4', '1Gi')),
      ],
    },
    { cpu: '5', memory: '2Gi' },
    { cpu: '5', memory: '2Gi' },
  ],
  [
    'pod-level resources take precedence',
    {
      containers: [c({ requests: { cpu: '1', 'example.com/gpu': '2' } })],
      resources: { requests: { cpu: '3', 'example.com/gpu': '9' }, limits: { memory: '4Gi' } },
    },
    { cpu: '3', 'example.com/gpu': '2' },
    { memory: '4Gi' },
  ],
  [
    'overhead is added to requests, and to existing limits',
    {
      containers: [c({ requests: { cpu: '1' }, limits: { cpu: '2' } })],
      overhead: { cpu: '200m', memory: '140Mi' },
    },
    { cpu: '1200m', memory: '140Mi' },
    { cpu: '2200m' },
  ],
];
for (const [what, spec, requests, limits] of sums) {
  test(`sums the resources of a pod: ${what}`, () => {
    const pod = aPod({ spec });
    assert.deepEqual(written(podRequests(pod)), requests);
    assert.deepEqual(written(podLimits(pod)), limits);
  });
}

test('omits the overhead from the sum of resources on request', () => {
  const pod = aPod({ spec: { containers: [c(both('1', '1Gi'))], overhead: { cpu: '1' } } });
  assert.deepEqual(written(podRequests(pod, { overhead: 'excluded' })), { cpu: '1', memory: '1Gi' });
  assert.deepEqual(written(podLimits(pod, { overhead: 'excluded' })), { cpu: '1', memory: '1Gi' });
});

test("the sum of a pod's resources is never less than any of its parts", () => {
  const container = fc
    .record({ cpu: fc.nat(5000), restartPolicy: fc.constantFrom(undefined, 'Always') })
    .map(({ cpu, restartPolicy }) => c({ requests: { cpu: `${cpu}m` } }, { restartPolicy }));
  fc.assert(
    fc.property(fc.array(container, { minLength: 1 }), fc.array(container), (containers, initContainers) => {
      const sum = podRequests(aPod({ spec: { containers, initContainers } })).get('cpu');
      for (const { resources } of [...containers, ...initContainers]) {
        const own = podRequests(aPod({ spec: { containers: [c(resources)] } })).get('cpu');
        assert.ok((sum?.nanos ?? 0n) >= (own?.nanos ?? 0n));
      }
    }),
  );
});

const shares: readonly [bigint, bigint][] = [
  [0n, 2n],
  [1n, 2n],
  [2n, 2n],
  [3n, 3n],
  [250n, 256n],
  [1000n, 1024n],
  [1500n, 1536n],
  [256_000n, 262_144n],
  [1_000_000n, 262_144n],
];
for (const [milli, expected] of shares) {
  test(`${milli}m of CPU is a cgroup weight of ${expected}`, () => assert.equal(cpuShares(milli), expected));
}

const quotas: readonly [bigint, bigint, bigint][] = [
  [0n, 100_000n, 0n],
  [1n, 100_000n, 1_000n],
  [10n, 100_000n, 1_000n],
  [250n, 100_000n, 25_000n],
  [1500n, 100_000n, 150_000n],
  [1000n, 5_000n, 5_000n],
  [100n, 5_000n, 1_000n],
];
for (const [milli, period, expected] of quotas) {
  test(`${milli}m of CPU in periods of ${period} µs is a quota of ${expected} µs`, () =>
    assert.equal(cpuQuotaUs(milli, period), expected));
}

test('converts a cgroup weight back to CPU', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 256_000 }), (milli) => {
      assert.equal(sharesToMilliCpu(Number(cpuShares(BigInt(milli)))), milli);
    }),
  );
});

test('converts a CPU quota back to the limit', () => {
  assert.equal(quotaUsToMilliCpu(30_000, 100_000), 300);
  assert.equal(quotaUsToMilliCpu(-1, 100_000), 0);
});
