import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cgroupDirectories, cgroupHierarchies, cgroupOf } from './cgroups.ts';

describe('cgroupHierarchies', () => {
  it('returns the mount points of whole cgroup hierarchies, not those of a subtree', () => {
    const mounts = [
      {
        mountPoint: '/sys/fs/cgroup',
        device: '0:1',
        root: '/',
        isShared: true,
        fsType: 'tmpfs',
        superOptions: [],
      },
      {
        mountPoint: '/sys/fs/cgroup/cpu',
        device: '0:1',
        root: '/',
        isShared: true,
        fsType: 'cgroup',
        superOptions: [],
      },
      {
        mountPoint: '/sys/fs/cgroup/unified',
        root: '/',
        isShared: true,
        fsType: 'cgroup2',
        device: '0:1',
        superOptions: [],
      },
      {
        mountPoint: '/elsewhere',
        device: '0:1',
        root: '/docker/1',
        isShared: false,
        fsType: 'cgroup',
        superOptions: [],
      },
    ];
    assert.deepEqual(cgroupHierarchies(mounts), ['/sys/fs/cgroup/cpu', '/sys/fs/cgroup/unified']);
  });
});

describe('cgroupOf', () => {
  it('returns a cgroupsPath without systemd syntax unchanged', () => {
    assert.equal(cgroupOf('/k8s.io/abc'), '/k8s.io/abc');
    assert.equal(cgroupOf('kubepods/besteffort/pod1/abc'), '/kubepods/besteffort/pod1/abc');
  });

  it('expands the parent slices of a systemd scope', () => {
    assert.equal(
      cgroupOf('kubepods-burstable-pod1.slice:cri-containerd:abc'),
      '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-abc.scope',
    );
  });

  it('rejects paths that lead out of the cgroup tree', () => {
    assert.equal(cgroupOf('../../etc/abc'), '/etc/abc');
  });
});

describe('cgroupDirectories', () => {
  it("returns the cgroup's directory in each hierarchy", () => {
    assert.deepEqual(cgroupDirectories(['/a', '/b'], '/k8s.io/x'), ['/a/k8s.io/x', '/b/k8s.io/x']);
  });
});
