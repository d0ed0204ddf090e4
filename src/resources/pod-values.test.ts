import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import type { PodSpec, ResourceRequirements } from '../kinds/index.ts';
import { kubepodsValues, podCgroupValues } from './pod-values.ts';

const settings = { cpuCfsQuota: true, cpuCfsQuotaPeriodUs: 100_000, podPidsLimit: -1 };
const full = { cpu: '100m', memory: '100Mi' };

function withResources(...all: readonly ResourceRequirements[]): Partial<PodSpec> {
  return { containers: all.map((resources, index) => ({ name: `c${index}`, image: 'x', resources })) };
}

function valuesOf(spec: Partial<PodSpec>, over: Partial<typeof settings> = {}) {
  const values = podCgroupValues(aPod({ spec }), { ...settings, ...over });
  return JSON.parse(JSON.stringify(values)) as unknown;
}

describe('podCgroupValues', () => {
  it('holds a Guaranteed pod to shares, quota and memory', () => {
    assert.deepEqual(valuesOf(withResources({ requests: full, limits: full })), {
      cpuShares: 102,
      cpuPeriodUs: 100_000,
      cpuQuotaUs: 10_000,
      memoryBytes: 104_857_600,
    });
  });

  it('counts the overhead of the runtime class', () => {
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

  it('limits a Burstable pod only where every container is limited', () => {
    const limited = { requests: { cpu: '50m' }, limits: full };
    assert.deepEqual(valuesOf(withResources(limited, { limits: { cpu: '1' } })), {
      cpuShares: 51,
      cpuPeriodUs: 100_000,
      cpuQuotaUs: 110_000,
    });
  });

  it('counts a pod-level limit even where containers have none', () => {
    const spec = { ...withResources({}), resources: { requests: { cpu: '1' }, limits: { memory: '64Mi' } } };
    assert.deepEqual(valuesOf(spec), { cpuShares: 1024, memoryBytes: 67_108_864 });
  });

  it('gives a BestEffort pod the least shares and nothing else', () => {
    assert.deepEqual(valuesOf(withResources({})), { cpuShares: 2 });
  });

  it('lifts the quota when quotas are turned off', () => {
    const spec = withResources({ requests: full, limits: full });
    const values = valuesOf(spec, { cpuCfsQuota: false }) as { cpuQuotaUs: number };
    assert.equal(values.cpuQuotaUs, -1);
  });

  it('limits processes only where the node says so', () => {
    assert.deepEqual(valuesOf(withResources({}), { podPidsLimit: 100 }), { cpuShares: 2, pidsLimit: 100 });
  });
});

describe('kubepodsValues', () => {
  it('leaves out what is reserved, and never goes below nothing', () => {
    const capacity = { milliCpu: 2000, memoryBytes: 4096, pids: 1000 };
    assert.deepEqual(kubepodsValues(capacity, { milliCpu: 500, memoryBytes: 8192, pids: 10 }), {
      cpuShares: 1536,
      memoryBytes: 0,
      pidsLimit: 990,
    });
  });
});
