import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cgroupEvents } from './kubelet/kubelet-settings.ts';

test('users of a node hear that it has the older version of cgroups', () => {
  assert.deepEqual(
    cgroupEvents('v1').map(({ type, reason }) => [type, reason]),
    [['Warning', 'CgroupV1']],
  );
  assert.deepEqual(cgroupEvents('v2'), []);
});
