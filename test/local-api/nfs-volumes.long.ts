import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { FakeNfs } from '../nfs/fake-nfs.ts';
import { LocalCluster } from './local-cluster.ts';
import { withoutKubectl } from './tour-commands.ts';
import { claim, claimed as claimedBy, persistentVolume, podWith } from './volume-objects.ts';

const whole = { name: 'data', mountPath: '/data' };

const pod = (name: string, volumes: readonly object[], script = 'cat /data/canary', mount: object = whole) =>
  podWith(name, script, { volumeMounts: volumes.length === 0 ? [] : [mount] }, { volumes });

const inline = (path: string, more: object = {}) => [
  { name: 'data', nfs: { server: 'files.test', path, ...more } },
];

const claimed = (name: string, annotations: object, spec: object) => [
  persistentVolume(
    name,
    { accessModes: ['ReadWriteMany'], nfs: { server: 'fd00::1', path: '/shared' }, ...spec },
    { annotations },
  ),
  claim(name, { accessModes: ['ReadWriteMany'] }),
  pod(name, [{ name: 'data', ...claimedBy(name) }]),
];

/**
 * The tests use the real kubectl and containerd, and a real kernel file system. A fake NFS client
 * and a fake server replace the real ones.
 */
describe('NFS volumes on kubeling up', { timeout: 900_000, skip: withoutKubectl() }, () => {
  let cluster: LocalCluster;
  let folder: string;
  let standIn: FakeNfs;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'klg-nfs-'));
    standIn = new FakeNfs(folder);
    cluster = await LocalCluster.open();
    await cluster.node.end('SIGKILL');
    cluster.node.change({ PATH: standIn.path });
    await cluster.node.start();
  });

  beforeEach(() => {
    standIn.mounting('works');
    standIn.unmounting('works');
    standIn.server('answers');
  });

  after(async () => {
    standIn.server('answers');
    const left = await cluster?.leave();
    await rm(folder, { recursive: true, force: true });
    assert.deepEqual(left, []);
  });

  const log = (name: string, text: string) =>
    cluster.until(`what ${name} reads`, ['logs', name], (out) => out === text);
  const isMounted = () => readFileSync('/proc/self/mountinfo', 'utf8').includes('kubernetes.io~nfs');
  const placeOf = (uid: string, name: string) =>
    join(cluster.node.dataDir, 'kubelet/pods', uid, 'volumes/kubernetes.io~nfs', name);
  const remove = (name: string) => cluster.kubectl('delete', 'pod', name, '--wait=false');
  const gone = (uid: string) =>
    cluster.node.until('the pod to be deleted', async () => {
      return !existsSync(join(cluster.node.dataDir, 'kubelet/pods', uid));
    });

  it('an NFS volume in a pod spec is mounted for the pod and removed completely', async () => {
    await cluster.apply(pod('plain', inline('/export', { readOnly: true })));
    await cluster.ready('plain');
    await log('plain', 'served\n');
    const uid = await cluster.uidOf('plain');
    assert.deepEqual(standIn.calls('mount'), [
      `mount -t nfs -o ro -- files.test:/export ${placeOf(uid, 'data')}`,
    ]);
    await remove('plain');
    await gone(uid);
    assert.equal(isMounted(), false);
  });

  it('an NFS volume of a claim is mounted with the mount options of its PersistentVolume: those in the mount-options annotation, or else those in the spec', async () => {
    await cluster.apply(...claimed('spec', {}, { mountOptions: ['nfsvers=4.1', 'hard'] }));
    const annotations = { 'volume.beta.kubernetes.io/mount-options': 'soft,timeo=10' };
    await cluster.apply(...claimed('note', annotations, { mountOptions: ['hard'] }));
    for (const [name, options] of [
      ['spec', 'hard,nfsvers=4.1'],
      ['note', 'soft,timeo=10'],
    ] as const) {
      await cluster.ready(name);
      await log(name, 'served\n');
      const uid = await cluster.uidOf(name);
      const place = placeOf(uid, name);
      assert.deepEqual(standIn.calls('mount', uid), [
        `mount -t nfs -o ${options} -- [fd00::1]:/shared ${place}`,
      ]);
      await remove(name);
      await gone(uid);
    }
  });

  for (const trouble of ['fail', 'half'] as const) {
    it(`an NFS volume that cannot be mounted (${trouble}) is reported, leaves nothing behind and is retried`, async () => {
      standIn.mounting(trouble);
      await cluster.apply(pod(trouble, inline(`/${trouble}`)));
      await cluster.event(
        'the event',
        `MountVolume.SetUp failed for volume "data" : mount failed: mount.nfs: access denied by server while mounting (mount -t nfs -- files.test:/${trouble} `,
      );
      const uid = await cluster.uidOf(trouble);
      await cluster.node.until('nothing to be left', async () => !existsSync(placeOf(uid, 'data')));
      standIn.mounting('works');
      await cluster.ready(trouble);
      await remove(trouble);
      await gone(uid);
    });
  }

  it('a hanging NFS mount blocks only its pod, which starts when the mount completes', async () => {
    standIn.mounting('hang');
    await cluster.apply(pod('waits', inline('/slow')));
    await cluster.event('the event', 'mounting files.test:/slow has not ended after 10 s, and continues');
    await cluster.apply(pod('beside', [], 'echo here'));
    await cluster.ready('beside');
    standIn.mounting('works');
    await cluster.ready('waits');
    await log('waits', 'served\n');
    const uid = await cluster.uidOf('waits');
    assert.equal(standIn.calls('mount', uid).length, 1);
    await remove('waits');
    await gone(uid);
  });

  it('a pod whose NFS mount hangs can be deleted', async () => {
    standIn.mounting('hang');
    await cluster.apply(pod('never', inline('/never')));
    await cluster.node.until('the mount to begin', async () => standIn.calls('mount', '/never').length > 0);
    const uid = await cluster.uidOf('never');
    await remove('never');
    await gone(uid);
    assert.equal(isMounted(), false);
  });

  it('a hanging NFS unmount is reported, blocks no other pod, and completes when the server responds', async () => {
    await cluster.apply(pod('leaves', inline('/held')));
    await cluster.ready('leaves');
    const uid = await cluster.uidOf('leaves');
    standIn.unmounting('hang');
    await remove('leaves');
    await cluster.event(
      'the event',
      `unmounting ${placeOf(uid, 'data')} has not ended after 10 s, and continues`,
    );
    await remove('beside');
    await cluster.apply(pod('after', [], 'echo here'));
    await cluster.ready('after');
    standIn.unmounting('works');
    await gone(uid);
    assert.equal(isMounted(), false);
  });

  it('with an unresponsive NFS server the node can restart, run other pods, and delete the pods that use the server', async () => {
    const part = { ...whole, mountPath: '/data/canary', subPath: 'canary' };
    await cluster.apply(
      pod('silent', inline('/silent')),
      pod('part', inline('/part'), 'cat /data/canary', part),
    );
    await cluster.ready('silent');
    await cluster.ready('part');
    await log('part', 'served\n');
    const [uid, uidOfPart] = [await cluster.uidOf('silent'), await cluster.uidOf('part')];
    standIn.server('silent');
    await cluster.node.end('SIGKILL');
    await cluster.node.start();
    await cluster.apply(pod('fresh', [], 'echo here'));
    await cluster.ready('fresh');
    await cluster.until('the pod to keep running', ['get', 'pod', 'silent'], (out) =>
      out.includes('Running'),
    );
    assert.equal(await cluster.uidOf('silent'), uid);
    for (const name of ['silent', 'part']) await remove(name);
    await gone(uid);
    await gone(uidOfPart);
    assert.equal(isMounted(), false);
  });

  it('an unresponsive subPath on NFS is reported and blocks no other pod', async () => {
    standIn.server('silent');
    const part = { ...whole, mountPath: '/data/canary', subPath: 'canary' };
    const names = ['a', 'b', 'c', 'd', 'e'];
    for (const name of names) await cluster.apply(pod(name, inline(`/${name}`), 'cat /data/canary', part));
    await cluster.apply(pod('other', [], 'echo here'));
    await cluster.ready('other');
    const why =
      'failed to prepare subPath for volumeMount "data" of container "main": its file system is not responding';
    for (const name of names)
      await cluster.until('its state', ['get', 'pod', name, '-o', 'yaml'], (out) =>
        out.replaceAll(/\s+/g, ' ').includes(why),
      );
    standIn.server('answers');
    for (const name of names) await log(name, 'served\n');
    for (const name of names) await remove(name);
    await cluster.node.until('all of it to be removed', async () => !isMounted());
  });
});
