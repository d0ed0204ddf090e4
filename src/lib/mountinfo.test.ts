import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseMountinfo } from './mountinfo.ts';

const text = String.raw`22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
36 22 0:26 / /sys/fs/cgroup/cpu rw,relatime shared:12 master:3 - cgroup cgroup rw,cpu,cpuacct
52 50 0:42 / /data/rootfs/with\040blank\134 rw - tmpfs tmpfs rw
53 22 0:43 /sub /data/other rw - tmpfs tmpfs rw
`;

describe('parseMountinfo', () => {
  it('reads the place, the root, the type and the options of each mount', () => {
    const mounts = parseMountinfo(text);
    assert.equal(mounts.length, 4);
    assert.deepEqual(mounts[1], {
      mountPoint: '/sys/fs/cgroup/cpu',
      root: '/',
      isShared: true,
      fsType: 'cgroup',
      superOptions: ['rw', 'cpu', 'cpuacct'],
    });
    assert.equal(mounts[3]?.root, '/sub');
    assert.equal(mounts[3]?.isShared, false);
  });

  it('takes the escapes out of paths', () => {
    assert.equal(parseMountinfo(text)[2]?.mountPoint, '/data/rootfs/with blank\\');
  });
});
