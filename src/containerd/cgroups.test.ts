import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { realClock } from '../lib/index.ts';
import { cgroupHierarchies, cgroupOf, cgroupProcesses, removeCgroup, removeIfEmpty } from './cgroups.ts';

describe('cgroupHierarchies', () => {
  it('takes each mounted hierarchy that shows the whole tree', () => {
    const mounts = [
      { mountPoint: '/sys/fs/cgroup', root: '/', fsType: 'tmpfs' },
      { mountPoint: '/sys/fs/cgroup/cpu', root: '/', fsType: 'cgroup' },
      { mountPoint: '/sys/fs/cgroup/unified', root: '/', fsType: 'cgroup2' },
      { mountPoint: '/elsewhere', root: '/docker/1', fsType: 'cgroup' },
    ];
    assert.deepEqual(cgroupHierarchies(mounts), ['/sys/fs/cgroup/cpu', '/sys/fs/cgroup/unified']);
  });
});

describe('cgroupOf', () => {
  it('takes a path as it is', () => {
    assert.equal(cgroupOf('/k8s.io/abc'), '/k8s.io/abc');
    assert.equal(cgroupOf('kubepods/besteffort/pod1/abc'), '/kubepods/besteffort/pod1/abc');
  });

  it('spells out the slices above a scope', () => {
    assert.equal(
      cgroupOf('kubepods-burstable-pod1.slice:cri-containerd:abc'),
      '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-abc.scope',
    );
  });

  it('cannot be led out of the tree', () => {
    assert.equal(cgroupOf('../../etc/abc'), '/etc/abc');
  });
});

describe('cgroups on disk', () => {
  const signal = new AbortController().signal;
  let dir = '';
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'cgroups-'));
  });
  after(() => rm(dir, { recursive: true }));

  it('finds processes in the cgroup and below, in every hierarchy, once', async () => {
    await mkdir(join(dir, 'p/k8s.io/x/inner'), { recursive: true });
    await mkdir(join(dir, 'q/k8s.io/x'), { recursive: true });
    await writeFile(join(dir, 'p/k8s.io/x/cgroup.procs'), '11\n12\n');
    await writeFile(join(dir, 'p/k8s.io/x/inner/cgroup.procs'), '13\n');
    await writeFile(join(dir, 'q/k8s.io/x/cgroup.procs'), '12\n');
    const found = await cgroupProcesses([join(dir, 'p'), join(dir, 'q'), join(dir, 'none')], '/k8s.io/x');
    assert.deepEqual(found.toSorted(), [11, 12, 13]);
  });

  it('removes children before parents and leaves what is beside', async () => {
    await mkdir(join(dir, 'r/k8s.io/x/a/b'), { recursive: true });
    await mkdir(join(dir, 'r/k8s.io/y'), { recursive: true });
    const { removed, problems } = await removeCgroup([join(dir, 'r')], '/k8s.io/x', realClock(), signal);
    assert.deepEqual(problems, []);
    assert.equal(removed.length, 3);
    assert.deepEqual(await readdir(join(dir, 'r/k8s.io')), ['y']);
    assert.deepEqual(await removeIfEmpty([join(dir, 'r')], '/k8s.io'), []);
    assert.deepEqual(await removeIfEmpty([join(dir, 'r')], '/k8s.io/y'), [join(dir, 'r/k8s.io/y')]);
  });

  it('reports what it cannot remove', async () => {
    await mkdir(join(dir, 's/x'), { recursive: true });
    await writeFile(join(dir, 's/x/file'), '');
    const { problems } = await removeCgroup([join(dir, 's')], '/x', realClock(), signal);
    assert.match(String(problems[0]), /Cannot remove the cgroup .*\/s\/x: ENOTEMPTY/);
  });
});
