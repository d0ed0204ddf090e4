import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Container, PodSpec, TopologySpreadConstraint } from '../../kinds/index.ts';
import { FieldPath } from '../../kinds/index.ts';
import { checkDevices, checkMounts } from './mounts.ts';
import { checkSpread } from './scheduling.ts';

const count = 2_000;
const report = () => {};
const path = FieldPath.root;

/** A list that counts how often fields of its elements are read. */
function counting(field: string, fields: object): { readonly list: readonly object[]; reads: number } {
  const counted = {
    reads: 0,
    list: Array.from({ length: count }, (_, index) =>
      Object.defineProperty({ ...fields }, field, {
        enumerable: true,
        get: () => {
          counted.reads++;
          return `${field}-${index}`;
        },
      }),
    ),
  };
  return counted;
}

test('compares volume mounts and devices of containers in linear time', () => {
  const mounts = counting('name', { mountPath: '/m' });
  const devices = counting('name', { devicePath: '/d' });
  const container = { volumeMounts: mounts.list, volumeDevices: devices.list } as unknown as Container;
  checkMounts(report, path, container, new Map());
  checkDevices(report, path, container, new Map());
  assert.ok(
    mounts.reads < 20 * count && devices.reads < 20 * count,
    `${mounts.reads}, ${devices.reads} reads`,
  );
});

test('compares topology spread constraints in linear time', () => {
  const constraints = counting('topologyKey', { maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' });
  checkSpread(
    report,
    path,
    constraints.list as PodSpec['topologySpreadConstraints'] & TopologySpreadConstraint[],
  );
  assert.ok(constraints.reads < 20 * count, `${constraints.reads} reads`);
});
