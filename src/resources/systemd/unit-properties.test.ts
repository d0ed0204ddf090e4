import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { perSecondUs, wholePercentQuotaUs } from '../../lib/cgroups/cpu-values.ts';
import { formatCpuSet } from '../cpu/cpu-set.ts';
import { startProperties, type UnitProperty, valueProperties } from './unit-properties.ts';

const infinity = 18_446_744_073_709_551_615n;
const spelled = (properties: readonly UnitProperty[]) =>
  Object.fromEntries(properties.map(([name, { signature, value }]) => [`${name} ${signature}`, value]));

describe('properties of a new slice', () => {
  const slice = { unit: 'kubepods-burstable.slice', parent: 'kubepods.slice' };

  it('a new slice has its parent and all accounting as properties', () => {
    assert.deepEqual(spelled(startProperties({ ...slice, version: 2 })), {
      'Description s': 'kubelet cgroup kubepods-burstable.slice',
      'Wants as': ['kubepods.slice'],
      'MemoryAccounting b': true,
      'CPUAccounting b': true,
      'IOAccounting b': true,
      'TasksAccounting b': true,
      'DefaultDependencies b': false,
    });
  });

  it('a new slice has BlockIOAccounting with cgroups v1', () => {
    const names = startProperties({ ...slice, version: 1 }).map(([name]) => name);
    assert.ok(names.includes('BlockIOAccounting') && !names.includes('IOAccounting'));
  });
});

describe('values of a slice', () => {
  const values = {
    cpuShares: 512,
    cpuQuotaUs: 34_000,
    cpuPeriodUs: 100_000,
    memoryBytes: 67_108_864,
    swapBytes: 0,
    pidsLimit: 64,
    cpus: '0-3,9',
    hugePages: new Map([['2MB', 0]]),
  };

  it('converts cgroup values to slice properties with cgroups v1', () => {
    assert.deepEqual(spelled(valueProperties(values, 1, 257)), {
      'MemoryLimit t': 67_108_864n,
      'CPUShares t': 512n,
      'CPUQuotaPeriodUSec t': 100_000n,
      'CPUQuotaPerSecUSec t': 340_000n,
      'TasksMax t': 64n,
    });
  });

  it('converts cgroup values to slice properties with cgroups v2', () => {
    assert.deepEqual(spelled(valueProperties(values, 2, 257)), {
      'MemoryMax t': 67_108_864n,
      'MemorySwapMax t': 0n,
      'CPUWeight t': 20n,
      'AllowedCPUs ay': [0b1111, 0b10],
      'CPUQuotaPeriodUSec t': 100_000n,
      'CPUQuotaPerSecUSec t': 340_000n,
      'TasksMax t': 64n,
    });
  });

  it('omits slice properties that an old systemd does not support', () => {
    const known = (version: number) =>
      valueProperties(values, 2, version)
        .map(([name]) => name)
        .filter((name) => name === 'AllowedCPUs' || name === 'CPUQuotaPeriodUSec');
    assert.deepEqual(known(241), []);
    assert.deepEqual(known(243), ['CPUQuotaPeriodUSec']);
    assert.deepEqual(known(244), ['AllowedCPUs', 'CPUQuotaPeriodUSec']);
  });

  it('an unlimited value becomes infinity in the slice properties, and an unset value is omitted', () => {
    const none = { cpuQuotaUs: -1, memoryBytes: -1, swapBytes: -1, pidsLimit: -1 };
    assert.deepEqual(spelled(valueProperties(none, 2, 257)), {
      'MemoryMax t': infinity,
      'MemorySwapMax t': infinity,
      'CPUQuotaPerSecUSec t': infinity,
      'TasksMax t': infinity,
    });
    assert.deepEqual(valueProperties({ memoryBytes: 0, hugePages: new Map() }, 2, 257), []);
    assert.deepEqual(spelled(valueProperties({ pidsLimit: 0 }, 1, 257)), { 'TasksMax t': 1n });
  });
});

describe('the CPU quota property', () => {
  it('rounds the CPU quota property up to whole percents', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1_000, max: 1_000_000 }), fc.nat(100_000_000), (periodUs, more) => {
        const quotaUs = 1_000 + more;
        const perSecond = perSecondUs(quotaUs, periodUs);
        const asked = (quotaUs * 1_000_000) / periodUs;
        assert.equal(perSecond % 10_000, 0);
        assert.ok(perSecond > asked - 1 && perSecond < asked + 10_000, `${perSecond} for ${asked}`);
        const retained = wholePercentQuotaUs(quotaUs, periodUs);
        assert.ok(retained >= quotaUs - 1);
        assert.equal(perSecondUs(retained, periodUs), perSecond);
        assert.equal(wholePercentQuotaUs(retained, periodUs), retained);
      }),
    );
  });

  it('keeps a CPU quota of whole percents exactly, and omits the property without a quota', () => {
    assert.equal(wholePercentQuotaUs(33_300, 100_000), 34_000);
    assert.equal(wholePercentQuotaUs(50_000, 100_000), 50_000);
    assert.equal(wholePercentQuotaUs(-1, 100_000), -1);
  });
});

describe('CPU bit masks', () => {
  it('a CPU bit mask contains exactly the given CPUs', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(300), { minLength: 1 }), (cpus) => {
        const properties = valueProperties({ cpus: formatCpuSet(new Set(cpus)) }, 2, 257);
        const bytes = new Map(properties).get('AllowedCPUs')?.value as readonly number[];
        const found = bytes.flatMap((byte, at) =>
          Array.from({ length: 8 }, (_, bit) => (byte & (1 << bit) ? [at * 8 + bit] : [])).flat(),
        );
        assert.deepEqual(
          found,
          cpus.toSorted((a, b) => a - b),
        );
        assert.notEqual(bytes.at(-1), 0);
      }),
    );
  });
});
