import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import { sandboxLimits } from './pod-limits.ts';

test("a sandbox's limits exclude the pod's overhead, and its CPU shares have a minimum", () => {
  const pod = aPod({ spec: { overhead: { cpu: '250m', memory: '100Mi' } } });
  const limits = { cpuShares: 512, cpuQuotaUs: 60_000, cpuPeriodUs: 100_000, memoryBytes: 300 * 2 ** 20 };
  assert.deepEqual(sandboxLimits(pod, limits), {
    cpuShares: 256n,
    cpuQuota: 35_000n,
    cpuPeriod: 100_000n,
    memoryLimitInBytes: 200n << 20n,
  });
  const rounded = { ...limits, cpuShares: 238, cpuQuotaUs: -1, memoryBytes: -1 };
  const { cpuShares, cpuQuota, memoryLimitInBytes } = sandboxLimits(pod, rounded);
  assert.deepEqual([cpuShares, cpuQuota, memoryLimitInBytes], [2n, -1n, -1n]);
  assert.equal(sandboxLimits(aPod(), limits).cpuShares, 512n);
});
