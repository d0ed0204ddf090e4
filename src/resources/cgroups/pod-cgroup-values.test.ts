import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import type { Container, PodSpec, ResourceRequirements } from '../../kinds/index.ts';
import { sharesToWeight } from '../../lib/cgroups/cpu-values.ts';
import type { CgroupValues } from './cgroup-values.ts';
import { kubepodsValues, podCgroupValues } from './pod-cgroup-values.ts';

const settings = {
  cpuCfsQuota: true,
  cpuCfsQuotaPeriodUs: 100_000,
  podPidsLimit: -1,
  hugePageSizes: [] as readonly string[],
};
const full = { cpu: '100m', memory: '100Mi' };

function withResources(...all: readonly ResourceRequirements[]): Partial<PodSpec> {
  return { containers: all.map((resources, index) => ({ name: `c${index}`, image: 'x', resources })) };
}

function valuesOf(spec: Partial<PodSpec>, over: Partial<typeof settings> = {}) {
  const values = podCgroupValues(aPod({ spec }), { ...settings, ...over });
  return plain(values);
}

/**
 * Returns the cgroup values of the pod without unset values, and without huge pages if no page size
 * is set.
 */
function plain({ hugePages, ...rest }: CgroupValues): unknown {
  const sizes = hugePages === undefined || hugePages.size === 0 ? undefined : Object.fromEntries(hugePages);
  return JSON.parse(JSON.stringify({ ...rest, hugePages: sizes })) as unknown;
}

describe('podCgroupValues: cgroup values of a pod', () => {
  it('sets shares, quota and memory limit of a Guaranteed pod', () => {
    assert.deepEqual(valuesOf(withResources({ requests: full, limits: full })), {
      cpuShares: 102,
      cpuPeriodUs: 100_000,
      cpuQuotaUs: 10_000,
      memoryBytes: 104_857_600,
    });
  });

  it('includes the overhead of the runtime class in the cgroup values of a pod', () => {
    const spec = {
      ...withResources({ requests: full, limits: full }),
      overhead: { cpu: '200m', memory: '140Mi' },
    };
    assert.deepEqual(valuesOf(spec), {
      cpuShares: 307,
      cpuPeriodUs: 100_000,
      cpuQuotaUs: 30_000,
      memoryBytes: 251_658_240,
    });
  });

  it('limits a Burstable pod only if all its containers have limits', () => {
    const limited = { requests: { cpu: '50m' }, limits: full };
    assert.deepEqual(valuesOf(withResources(limited, { limits: { cpu: '1' } })), {
      cpuShares: 51,
      cpuPeriodUs: 100_000,
      cpuQuotaUs: 110_000,
    });
  });

  it('uses a pod-level limit for the pod cgroup even if containers have none', () => {
    const spec = { ...withResources({}), resources: { requests: { cpu: '1' }, limits: { memory: '64Mi' } } };
    assert.deepEqual(valuesOf(spec), { cpuShares: 1024, memoryBytes: 67_108_864 });
  });

  it('sets only the minimum CPU shares for a BestEffort pod', () => {
    assert.deepEqual(valuesOf(withResources({})), { cpuShares: 2 });
  });

  it('omits the CPU quota of the pod cgroup if CPU quotas are disabled', () => {
    const spec = withResources({ requests: full, limits: full });
    const values = valuesOf(spec, { cpuCfsQuota: false }) as { cpuQuotaUs: number };
    assert.equal(values.cpuQuotaUs, -1);
  });

  it('limits the memory of a pod with a limited sidecar if its unlimited init container starts after the sidecar, but not if it runs before the sidecar', () => {
    const sidecar = { name: 's', restartPolicy: 'Always', resources: { limits: { memory: '64Mi' } } };
    const limited = withResources({ requests: { cpu: '1' }, limits: { memory: '64Mi' } });
    const memoryOf = (...initContainers: readonly Container[]) =>
      (valuesOf({ ...limited, initContainers }) as CgroupValues).memoryBytes;
    assert.equal(memoryOf(sidecar, { name: 'after' }), 134_217_728);
    assert.equal(memoryOf({ name: 'before' }, sidecar), undefined);
  });

  it('limits huge pages to the requests of the pod and forbids all other page sizes', () => {
    const pages = { 'hugepages-2Mi': '64Mi' };
    const hugePageSizes = ['2MB', '1GB'];
    const asking = withResources({ requests: pages, limits: pages }, { requests: pages, limits: pages });
    assert.deepEqual(valuesOf(asking, { hugePageSizes }), {
      cpuShares: 2,
      hugePages: { '2MB': 134_217_728, '1GB': 0 },
    });
    const whole = { ...withResources({}), resources: { requests: { ...full, 'hugepages-1Gi': '1Gi' } } };
    const values = valuesOf(whole, { hugePageSizes }) as { readonly hugePages: unknown };
    assert.deepEqual(values.hugePages, { '2MB': 0, '1GB': 1_073_741_824 });
  });

  it('limits the PIDs of a pod only if the node has a PID limit for pods', () => {
    assert.deepEqual(valuesOf(withResources({}), { podPidsLimit: 100 }), { cpuShares: 2, pidsLimit: 100 });
  });
});

describe('kubepodsValues: cgroup values of kubepods', () => {
  it('the kubepods cgroup gets the capacity minus the reservations, never less than zero', () => {
    const capacity = { milliCpu: 2000, memoryBytes: 4096, pids: 1000 };
    const reserved = { milliCpu: 500, memoryBytes: 8192, pids: 10 };
    const expected = { cpuShares: 1536, memoryBytes: 0, pidsLimit: 990 };
    assert.deepEqual(plain(kubepodsValues(capacity, reserved)), expected);
    const hugePages = new Map([['2MB', 4_194_304]]);
    assert.deepEqual(plain(kubepodsValues({ ...capacity, hugePages }, reserved)), {
      ...expected,
      hugePages: { '2MB': 4_194_304 },
    });
  });

  it('derives the CPU weight of kubepods from the reservations if configured, and never sets it above the weight of the complete capacity', () => {
    const shares = (milliCpu: number, reserved: number, weight: Parameters<typeof kubepodsValues>[2]) =>
      kubepodsValues({ milliCpu, memoryBytes: 0 }, { milliCpu: reserved, memoryBytes: 0 }, weight).cpuShares;
    assert.equal(shares(16_000, 8_000, 'capacity'), 8192);
    assert.equal(shares(16_000, 8_000, 'proportional-v1'), 1024);
    assert.equal(sharesToWeight(shares(16_000, 8_000, 'proportional-v2') ?? 0), 100);
    assert.equal(sharesToWeight(shares(64_000, 16_000, 'proportional-v2') ?? 0), 300);
    for (const weight of ['proportional-v1', 'proportional-v2'] as const) {
      assert.equal(shares(64_000, 0, weight), 65_536, 'nothing is reserved');
      assert.equal(shares(4_000, 1, weight), shares(4_000, 1, 'capacity'));
      assert.equal(sharesToWeight(shares(4_000, 4_000, weight) ?? 0), 1);
    }
  });
});
