import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkedDiskType, checkedFsType, checkedMountFlags, checkedMountOptions } from './mount-options.ts';

const isRefusal = (field: string) => (error: Error) =>
  error.message.startsWith(`invalid ${field}: must be `) && error.message.length < 300;
const long = 'a'.repeat(65_536);

test('accepts the usual options for NFS and disks unchanged', () => {
  const options = [
    ...['hard', 'nfsvers=4.1', 'rsize=1048576', 'sec=krb5p', 'proto=tcp6', 'addr=fe80::1%eth0', 'nconnect=8'],
    ...['noatime', 'errors=remount-ro', 'compress=zstd:3', 'data=ordered', '_netdev', 'lookupcache=none'],
    ...['context=system_u:object_r:nfs_t:s0', 'context="u:r:t:s0:c1,c2"', 'subvol=/a/b', 'clientaddr=[::1]'],
  ];
  assert.deepEqual(checkedMountOptions(options), options);
  assert.deepEqual(checkedMountOptions([]), []);
});

test('splits several mount options in one entry like mount(8), and rejoins a quoted label that contains a comma', () => {
  assert.deepEqual(checkedMountOptions(['hard,nfsvers=4.1', 'ro']), ['hard', 'nfsvers=4.1', 'ro']);
  assert.deepEqual(checkedMountOptions(['context="a:b', 'c"', ',ro,']), ['context="a:b,c"', 'ro']);
});

for (const option of [
  ...['bind', 'rbind', 'move', 'remount', 'loop', 'loop=/dev/loop0', 'offset=1', 'helper=x', 'uhelper=x'],
  ...['x-systemd.automount', 'X-mount.subdir=etc', 'x-mount.mkdir', 'verity.hashdevice=/dev/sda', 'LOOP'],
  ...[
    'hard,bind',
    'ro,X-mount.idmap=/proc/1/ns/user',
    '-o',
    '--',
    '-iT/x',
    '=a',
    'a b',
    ' a',
    'a\nb',
    'a\0b',
    'a=b\n',
  ],
  ...[
    'a="b',
    'a="b,c"',
    'context="a" bind',
    'context="a"b"',
    'context="$(id)"',
    'a=\\,bind',
    "a='b'",
    'a=`id`',
    'é',
    long,
  ],
])
  test(`rejects the mount option ${JSON.stringify(option.slice(0, 40))}`, () => {
    assert.throws(() => checkedMountOptions([option]), isRefusal('mountOptions'));
    assert.throws(() => checkedMountOptions(['ro', option]), isRefusal('mountOptions'));
  });

test('accepts a file system type of one word, and rejects types that are no word or that start a shell', () => {
  for (const type of ['', 'ext4', 'XFS', 'nfs4', '9p', 'fuse.juicefs', 'crypto_LUKS'])
    assert.equal(checkedFsType(type), type);
  for (const type of ['-iT', '--', '.ext4', 'ext4,xfs', 'a b', 'a\nb', 'a\0b', '$(id)', '../x', 'a/b', long])
    for (const check of [checkedFsType, checkedDiskType])
      assert.throws(() => check(type), isRefusal('fsType'));
  for (const type of ['', 'fuse', 'fuse.sh']) assert.throws(() => checkedDiskType(type), isRefusal('fsType'));
  for (const type of ['ext4', 'fuseblk', 'LVM2_member']) assert.equal(checkedDiskType(type), type);
});

test('accepts any CSI driver flags on one line', () => {
  const flags = ['--allow-delete', 'region us-west-2', '-o allow_other', 'uid=1,gid=2', 'context="a,b"'];
  assert.deepEqual(checkedMountFlags(flags), flags);
  for (const flag of ['a\nb', 'a\0b', 'a\tb', '\x7f'])
    assert.throws(() => checkedMountFlags(['ro', flag]), isRefusal('mountOptions'));
});
