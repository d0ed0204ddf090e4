import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { KubelingError, parseMountinfo } from '../lib/index.ts';
import type { Run } from './machine.ts';
import { mountsBelow, unmountBelow } from './mounts.ts';

const mountinfo = String.raw`22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
36 22 0:26 / /sys/fs/cgroup/cpu rw,relatime shared:12 master:3 - cgroup cgroup rw,cpu
50 22 0:40 / /data/containerd/state/a/rootfs rw - overlay overlay rw,lowerdir=/x - y
51 22 0:41 net:[4026532281] /data/containerd/state/netns/cni-1 rw - nsfs nsfs rw
52 50 0:42 / /data/containerd/state/a/rootfs/with\040blank\134 rw - tmpfs tmpfs rw
53 22 0:43 /sub /data/containerd-other rw - tmpfs tmpfs rw
54 22 0:44 / /data/containerd/state/netns/cni-1 rw - nsfs nsfs rw
`;

describe('mountsBelow', () => {
  it('lists only mounts below the directory: the deepest first, stacked mounts twice', () => {
    assert.deepEqual(mountsBelow(parseMountinfo(mountinfo), '/data/containerd'), [
      '/data/containerd/state/a/rootfs/with blank\\',
      '/data/containerd/state/netns/cni-1',
      '/data/containerd/state/netns/cni-1',
      '/data/containerd/state/a/rootfs',
    ]);
  });

  it('does not list a mount at the directory itself', () => {
    assert.deepEqual(mountsBelow(parseMountinfo(mountinfo), '/data/containerd-other'), []);
  });
});

describe('unmountBelow', () => {
  it('detaches a busy mount with its loop device, skips mounts that must be kept, and reports failures', async () => {
    const procDir = await mkdtemp(join(tmpdir(), 'mounts-'));
    const sysDir = join(procDir, 'sys');
    await mkdir(join(procDir, 'self'));
    for (const [name, held] of Object.entries({ loop1: '/d/busy', loop2: '/d/free', loop3: '/d/busy/x' })) {
      await mkdir(join(sysDir, 'block', name, 'loop'), { recursive: true });
      await writeFile(join(sysDir, 'block', name, 'loop/backing_file'), `${held}\n`);
    }
    const line = (path: string) => `22 1 0:1 / ${path} rw - tmpfs tmpfs rw\n`;
    await writeFile(
      join(procDir, 'self/mountinfo'),
      ['/d/free', '/d/busy', '/d/stuck', '/d/kept'].map(line).join(''),
    );
    const calls: string[] = [];
    const run: Run = async (file, args) => {
      calls.push([file, ...args].join(' '));
      const isBusy = args.includes('/d/busy') && !args.includes('-l');
      const isFine = file === 'losetup' || args.includes('/d/free') || (args.includes('/d/busy') && !isBusy);
      if (!isFine) throw new KubelingError('COMMAND_FAILED', 'target is busy');
      return { end: { kind: 'exited', code: 0 }, stdout: '', stderr: '', droppedBytes: 0 };
    };
    const signal = new AbortController().signal;
    const { removed, problems } = await unmountBelow(
      '/d',
      { run, procDir, sysDir, keep: ['/d/kept'] },
      signal,
    );
    assert.deepEqual(removed, ['/d/busy', '/d/free']);
    assert.deepEqual(problems, ['Cannot unmount /d/stuck: target is busy']);
    assert(!calls.some((call) => call.includes('/d/kept')));
    // Only the loop device whose backing file is the busy mount point is detached.
    assert.deepEqual(
      calls.filter((call) => call.includes('loop') || call.includes('/d/busy')),
      ['umount -- /d/busy', 'losetup -d /dev/loop1', 'umount -l -- /d/busy'],
    );
    await rm(procDir, { recursive: true });
  });
});
