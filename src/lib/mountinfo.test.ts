import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, test } from 'node:test';
import { loopDevicesOf, parseMountinfo, readMountTable } from './mountinfo.ts';

const text = String.raw`22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
36 22 0:26 / /sys/fs/cgroup/cpu rw,relatime shared:12 master:3 - cgroup cgroup rw,cpu,cpuacct
52 50 0:42 / /data/rootfs/with\040blank\134 rw - tmpfs tmpfs rw
53 22 0:43 /sub /data/other rw - tmpfs tmpfs rw
`;

describe('parseMountinfo', () => {
  it('reads the mount point, the root, the type and the options of each mount', () => {
    const mounts = parseMountinfo(text);
    assert.equal(mounts.length, 4);
    assert.deepEqual(mounts[1], {
      mountPoint: '/sys/fs/cgroup/cpu',
      device: '0:26',
      root: '/',
      isShared: true,
      fsType: 'cgroup',
      superOptions: ['rw', 'cpu', 'cpuacct'],
    });
    assert.equal(mounts[3]?.root, '/sub');
    assert.equal(mounts[3]?.isShared, false);
  });

  it('decodes the escapes in paths', () => {
    assert.equal(parseMountinfo(text)[2]?.mountPoint, '/data/rootfs/with blank\\');
  });

  it('decodes every escape, and removes the suffix that the kernel adds to the path of a deleted directory', () => {
    const line = String.raw`53 22 0:43 /a\011b /c\012d\043\040(deleted) rw - tmpfs t\040s rw`;
    const [mount] = parseMountinfo(line);
    assert.deepEqual([mount?.root, mount?.mountPoint], ['/a\tb', '/c\nd#']);
  });

  it('keeps a quoted comma as part of the option', () => {
    const line = '53 22 0:43 / /m rw - ext4 /dev/a rw,context="u:r:t:s0:c1,c2",discard';
    assert.deepEqual(parseMountinfo(line)[0]?.superOptions, ['rw', 'context="u:r:t:s0:c1,c2"', 'discard']);
  });

  it('skips truncated lines', () => {
    const whole = '36 22 0:26 / /m rw,relatime shared:12 - tmpfs tmpfs rw';
    for (let length = 0; length < whole.length - 2; length++) {
      const cut = whole.slice(0, length);
      const mounts = parseMountinfo(`${whole}\n${cut}`);
      assert.equal(mounts.length, 1, cut);
    }
  });
});

describe('readMountTable', () => {
  const line = (id: number) => `${id} 22 0:26 / /m${id} rw - tmpfs tmpfs rw\n`;
  const torn = () => {
    const texts = [line(1), line(2), line(1) + line(2), line(1) + line(2), line(3)];
    let reads = 0;
    return { read: async () => texts[reads++] ?? '', count: () => reads };
  };

  it('reads the mount table again on old kernels until two reads are equal', async () => {
    for (const kernel of ['5.7.19-generic', '4.19.0', '3.10.0-1160.el7']) {
      const { read, count } = torn();
      const mounts = await readMountTable(read, kernel);
      assert.deepEqual([mounts.map(({ mountPoint }) => mountPoint), count()], [['/m1', '/m2'], 4], kernel);
    }
  });

  it('reads the mount table once on new kernels, and a limited number of times on old ones', async () => {
    const { read, count } = torn();
    await readMountTable(read, '5.8.0');
    assert.equal(count(), 1);
    let reads = 0;
    await readMountTable(async () => line(reads++), '5.4.0');
    assert.equal(reads, 10);
  });

  it('returns the current mount table although an older one was parsed before', async () => {
    const tables = [[1, 2, 3], [1, 3], [3, 1, 4], [3, 1, 4], [], [4]];
    for (const ids of tables) {
      const text = ids.map(line).join('');
      assert.deepEqual(await readMountTable(async () => text, '6.1.0'), parseMountinfo(text), text);
    }
  });
});

test('finds loop devices by their backing file, and none without devices', async () => {
  const sysDir = await mkdtemp(join(tmpdir(), 'loops-'));
  assert.deepEqual(await loopDevicesOf('/a', sysDir), []);
  const holds = { loop0: '/a', loop1: '/a/b', loop2: '/a', loop3: '/a (deleted)', sda: '/a' };
  for (const [name, path] of Object.entries(holds)) {
    await mkdir(join(sysDir, 'block', name, 'loop'), { recursive: true });
    await writeFile(join(sysDir, 'block', name, 'loop/backing_file'), `${path}\n`);
  }
  await mkdir(join(sysDir, 'block/loop4'));
  assert.deepEqual((await loopDevicesOf('/a', sysDir)).toSorted(), ['/dev/loop0', '/dev/loop2']);
  assert.deepEqual(await loopDevicesOf('/b', sysDir), []);
  await rm(sysDir, { recursive: true });
});
