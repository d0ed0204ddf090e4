import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { LoopDisk } from '../disks/loop-disk.ts';
import { LocalCluster } from './local-cluster.ts';
import { withoutKubectl } from './tour-commands.ts';
import { claim, claimed, mounted, onThisNode, persistentVolume, podWith } from './volume-objects.ts';

const volume = (name: string, local: object, more: object = {}) =>
  persistentVolume(name, { nodeAffinity: onThisNode, local, ...more });

function pod(name: string, of: string, script: string, more: { fsGroup?: number; readOnly?: boolean } = {}) {
  const { fsGroup, readOnly = false } = more;
  const securityContext = fsGroup === undefined ? {} : { securityContext: { fsGroup } };
  const volumes = [{ name: 'data', ...claimed(of, readOnly) }];
  return podWith(name, script, mounted, { ...securityContext, volumes });
}

/** The tests use the real kubectl, the real containerd and real kernel block devices. */
describe('local disks as persistent volumes on kubeling up', {
  timeout: 900_000,
  skip: withoutKubectl(),
}, () => {
  let cluster: LocalCluster;
  let folder: string;
  const disks: LoopDisk[] = [];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'klg-disks-'));
    cluster = await LocalCluster.open();
  });

  after(async () => {
    const left = await cluster?.leave();
    for (const disk of disks) disk[Symbol.dispose]();
    await rm(folder, { recursive: true, force: true });
    assert.deepEqual(left, []);
  });

  function disk(name: string, bytes?: number): LoopDisk {
    const created = new LoopDisk(join(folder, name), bytes);
    disks.push(created);
    return created;
  }

  const global = (name: string) =>
    join(cluster.node.dataDir, 'kubelet/plugins/kubernetes.io/local-volume/mounts', name);
  const mounts = (text: string) =>
    readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .filter((line) => line.includes(text));
  const unused = (name: string, { device }: LoopDisk) =>
    cluster.node.until('the disk to be released', async () => {
      return mounts(` ${device} `).length === 0 && !existsSync(global(name));
    });

  it('an empty disk is formatted, mounted once, shared by pods, and keeps its content', async () => {
    const created = disk('empty');
    await cluster.apply(
      volume('empty', { path: created.device }, { mountOptions: ['noatime'] }),
      claim('empty'),
    );
    await cluster.apply(pod('first', 'empty', 'echo kept > /data/note; stat -c %g /data', { fsGroup: 4321 }));
    await cluster.ready('first');
    await cluster.logContains('first', '4321');
    assert.equal(created.type(), 'ext4');
    await cluster.apply(pod('second', 'empty', 'cat /data/note', { fsGroup: 77 }));
    await cluster.ready('second');
    await cluster.logContains('second', 'kept');
    await cluster.event(
      'the event',
      'The requested fsGroup is 77, but the volume empty has GID 4321. The volume may not be shareable.',
    );
    const of = mounts(` ${created.device} `);
    assert.equal(of.filter((line) => line.includes('/local-volume/mounts/empty ')).length, 1);
    assert.equal(of.filter((line) => line.includes('/kubernetes.io~local-volume/empty ')).length, 2);
    assert.ok(of.every((line) => line.includes('noatime')));
    await cluster.kubectl('delete', 'pod', 'first');
    assert.ok(existsSync(global('empty')));
    await cluster.kubectl('delete', 'pod', 'second');
    await unused('empty', created);
    await cluster.apply(
      pod('third', 'empty', 'cat /data/note; touch /data/x 2>&1 || echo refused', { readOnly: true }),
    );
    await cluster.ready('third');
    await cluster.logContains('third', 'kept\ntouch: /data/x: Read-only file system\nrefused');
    await cluster.kubectl('delete', 'pod', 'third');
    await unused('empty', created);
  });

  it('a disk with another file system is reported on the pod and on the volume, and is not changed', async () => {
    const created = disk('other');
    created.format();
    await cluster.apply(volume('other', { path: created.device, fsType: 'xfs' }), claim('other'));
    await cluster.apply(pod('other', 'other', 'echo here'));
    await cluster.event('the event', 'MountVolume.MountDevice failed for volume "other" : mount failed: ');
    const ofVolume = ['get', 'events', '-A', '--field-selector', 'involvedObject.kind=PersistentVolume'];
    await cluster.until('the event of the volume', ofVolume, (out) =>
      /FailedMountOnFilesystemMismatch\s+persistentvolume\/other\s+MountVolume failed for volume "other" : mount failed: /.test(
        out,
      ),
    );
    assert.equal(created.type(), 'ext4');
    await cluster.kubectl('delete', 'pod', 'other');
    await unused('other', created);
  });

  it('a disk with partitions is never formatted', async () => {
    const created = disk('parts');
    const table = Buffer.alloc(512);
    Buffer.from([0x80, 0, 2, 0, 0x83, 0, 0x10, 0, 0, 8, 0, 0, 0, 0x10, 0, 0]).copy(table, 446);
    Buffer.from([0x55, 0xaa]).copy(table, 510);
    created.write(table);
    await cluster.apply(
      volume('parts', { path: created.device }),
      claim('parts'),
      pod('parts', 'parts', 'echo here'),
    );
    await cluster.event('the event', 'MountVolume.MountDevice failed for volume "parts" : mount failed: ');
    assert.deepEqual(readFileSync(created.device).subarray(0, 512), table);
    await cluster.kubectl('delete', 'pod', 'parts');
    await unused('parts', created);
  });

  it('a damaged file system is reported, and a disk for read-only use is not formatted', async () => {
    const [broken, blank] = [disk('broken'), disk('blank')];
    broken.format();
    broken.damage();
    await cluster.apply(volume('broken', { path: broken.device }), claim('broken'));
    await cluster.apply(volume('blank', { path: blank.device }), claim('blank'));
    await cluster.apply(pod('broken', 'broken', 'echo'), pod('blank', 'blank', 'echo', { readOnly: true }));
    await cluster.event(
      'the event',
      `MountVolume.MountDevice failed for volume "broken" : 'fsck' found errors on device ${broken.device} but could not correct them: `,
    );
    await cluster.event(
      'the event',
      `cannot mount unformatted disk ${blank.device} as we are manipulating it`,
    );
    assert.equal(blank.type(), '');
    await cluster.kubectl('delete', 'pod', 'broken', 'blank');
    await unused('broken', broken);
    await unused('blank', blank);
  });

  it('files and character devices are rejected as disks', async () => {
    await cluster.apply(
      volume('null', { path: '/dev/null' }),
      claim('null'),
      pod('null', 'null', 'echo here'),
    );
    await cluster.event(
      'the event',
      'MountVolume.NewMounter initialization failed for volume "null" : only directory and block device are supported',
    );
    await cluster.kubectl('delete', 'pod', 'null');
  });

  it('the file system grows with the disk, before a pod uses it and while the pod runs', async () => {
    const mebi = 2 ** 20;
    // The disk has xfs, because the kernel grows xfs with the privileges that suffice to mount it.
    const created = disk('grown', 400 * mebi);
    created.format('xfs');
    await cluster.apply(volume('grown', { path: created.device }), claim('grown'));
    await cluster.until('the claim', ['get', 'pvc', 'grown'], (out) => out.includes('Bound'));
    const grow = async (to: number, from: string) => {
      created.resize(to * mebi);
      const capacity = { capacity: { storage: `${to}Mi` } };
      await cluster.kubectl('patch', 'pv', 'grown', '-p', JSON.stringify({ spec: capacity }));
      const status = {
        capacity: { storage: from },
        allocatedResources: { storage: `${to}Mi` },
        allocatedResourceStatuses: { storage: 'NodeResizePending' },
      };
      const patch = ['--subresource=status', '--type=merge', '-p', JSON.stringify({ status })];
      await cluster.kubectl('patch', 'pvc', 'grown', ...patch);
    };
    const follows = async (to: number) => {
      const known = ['get', 'pvc', 'grown', '-o', 'jsonpath={.status.capacity.storage}'];
      await cluster.until('the claim to report the size', known, (out) => out === `${to}Mi`);
      // The usable size is smaller than the disk, because the file system itself uses some space.
      const isLarge = (out: string) =>
        Number(out.trim().split('\n').at(-1)) > (to - 90) * 1024 &&
        Number(out.trim().split('\n').at(-1)) <= to * 1024;
      await cluster.until('the pod to have it', ['logs', 'grown'], isLarge);
    };
    await grow(500, '1Mi');
    const sizes = "while true; do df -k /data | awk 'END { print $2 }'; sleep 1; done";
    await cluster.apply(pod('grown', 'grown', sizes));
    await cluster.ready('grown');
    await follows(500);
    await cluster.event('the event', 'MountVolume.NodeExpandVolume succeeded for volume "grown"');
    await grow(600, '500Mi');
    await cluster.kubectl('annotate', 'pod', 'grown', 'look=now');
    await follows(600);
    await cluster.kubectl('delete', 'pod', 'grown');
    await unused('grown', created);
  });

  it('disks are adopted by a node restarted after a kill, and unmounted when no pod uses them', async () => {
    const created = disk('killed');
    await cluster.apply(
      volume('killed', { path: created.device }),
      claim('killed'),
      pod('runs', 'killed', 'echo on > /data/n'),
    );
    await cluster.ready('runs');
    await cluster.node.end('SIGKILL');
    await cluster.node.start();
    await cluster.until('it to run', ['get', 'pod', 'runs'], (out) => out.includes('Running'));
    await cluster.apply(pod('later', 'killed', 'cat /data/n'));
    await cluster.logContains('later', 'on');
    await cluster.kubectl('delete', 'pod', 'runs', '--wait=false');
    await cluster.kubectl('delete', 'pod', 'later', '--wait=false');
    await cluster.node.end('SIGKILL');
    await cluster.node.start();
    await unused('killed', created);
  });
});
