import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cgroupName, cgroupPath, parseCgroupPath } from './cgroup-name.ts';

const pod = cgroupName([], 'kubepods', 'burstable', 'pod1234-abcd-5678-efgh');

describe('cgroupPath: the path of a cgroup with each driver', () => {
  it('cgroupfs driver: a cgroup name is one directory per part', () => {
    assert.equal(cgroupPath(pod, 'cgroupfs'), '/kubepods/burstable/pod1234-abcd-5678-efgh');
    assert.equal(cgroupPath([], 'cgroupfs'), '/');
  });

  it('systemd driver: a cgroup name is one slice per part, prefixed with its parents', () => {
    assert.equal(
      cgroupPath(pod, 'systemd'),
      '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1234_abcd_5678_efgh.slice',
    );
    assert.equal(cgroupPath([], 'systemd'), '/');
  });

  it('a cgroup path is parsed back to its name with both drivers', () => {
    for (const driver of ['cgroupfs', 'systemd'] as const) {
      assert.deepEqual(parseCgroupPath(cgroupPath(pod, driver), driver), pod);
      assert.deepEqual(parseCgroupPath('/', driver), []);
    }
  });
});

describe('cgroupName: valid names of cgroups', () => {
  for (const part of ['a/b', 'a_b', '']) {
    it(`rejects a cgroup name with the part ${JSON.stringify(part)}`, () => {
      assert.throws(() => cgroupName([], part), { code: 'CGROUP_NAME' });
    });
  }
});
