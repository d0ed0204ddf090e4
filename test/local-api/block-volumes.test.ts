import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { LoopDisk } from '../disks/loop-disk.ts';
import { eventually } from '../kubeling-node.ts';
import { LocalCluster } from './local-cluster.ts';
import { withoutKubectl } from './tour-commands.ts';
import {
  asDevice,
  claimed,
  claim as claimOf,
  nodeName,
  onThisNode,
  persistentVolume,
  podWith,
} from './volume-objects.ts';

const block = { volumeMode: 'Block' };
const volume = (name: string, path: string) =>
  persistentVolume(name, { ...block, nodeAffinity: onThisNode, local: { path } });
const claim = (name: string) => claimOf(name, block);
const pod = (name: string, of: string, script: string, readOnly = false) =>
  podWith(name, script, asDevice, { volumes: [{ name: 'data', ...claimed(of, readOnly) }] });

/** The tests use the real kubectl, the real containerd and real kernel block devices. */
describe('raw block volumes of pods on kubeling up', { timeout: 900_000, skip: withoutKubectl() }, () => {
  let cluster: LocalCluster;
  let folder: string;
  let rootDir: string;
  const disks: LoopDisk[] = [];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'klg-blocks-'));
    cluster = await LocalCluster.open();
    rootDir = join(cluster.node.dataDir, 'kubelet');
  });

  after(async () => {
    // A pod still runs when the node is removed; its device must be released nevertheless.
    const left = await cluster?.leave();
    const held = holders(rootDir);
    for (const disk of disks) disk[Symbol.dispose]();
    await rm(folder, { recursive: true, force: true });
    assert.deepEqual([left, held], [[], []]);
    // A loop device on a removed path is not found by name, but it keeps the disk file in use.
    await eventually('the disks to be released', async () =>
      holders(folder).length === 0 ? 'gone' : undefined,
    );
  });

  function disk(name: string): LoopDisk {
    const created = new LoopDisk(join(folder, name));
    disks.push(created);
    return created;
  }

  /** Writes the objects that the cluster's resizer writes after it has expanded the volume. */
  const grow = async (name: string, storage: string) => {
    const to = (change: object) => ['--type=merge', '-p', JSON.stringify(change)];
    await cluster.kubectl('patch', 'pv', name, ...to({ spec: { capacity: { storage } } }));
    const allocatedResourceStatuses = { storage: 'NodeResizePending' };
    const status = { allocatedResources: { storage }, allocatedResourceStatuses };
    await cluster.kubectl('patch', 'pvc', name, '--subresource=status', ...to({ status }));
  };
  const globals = () => join(rootDir, 'plugins/kubernetes.io~local-volume/volumeDevices');
  const isMounted = (path: string) => readFileSync('/proc/self/mountinfo', 'utf8').includes(` ${path} `);
  /** The loop devices whose backing file is the path or lies below it. */
  const holders = (path: string) =>
    readdirSync('/sys/block').filter((name) => {
      const file = join('/sys/block', name, 'loop/backing_file');
      const held = existsSync(file) ? readFileSync(file, 'utf8').trimEnd() : '';
      return held === path || held.startsWith(`${path}/`);
    });
  const nothingLeft = () =>
    cluster.node.until('nothing to be left', async () => {
      return !existsSync(globals()) && holders(rootDir).length === 0;
    });

  it("a block volume reaches the container through the link in its pod's directory, and nothing is left after the pod is deleted", async () => {
    const created = disk('plain');
    created.write(Buffer.from('from outside'));
    await cluster.apply(volume('plain', created.device), claim('plain'));
    const script =
      'dd if=/dev/data bs=12 count=1 2>/dev/null; echo; echo -n inside > /dev/data && echo written; sync';
    await cluster.apply(pod('plain', 'plain', script));
    await cluster.ready('plain');
    await cluster.logContains('plain', 'from outside\nwritten');
    const uid = await cluster.uidOf('plain');
    const global = join(globals(), 'plain');
    const ofPod = join(rootDir, 'pods', uid, 'volumeDevices/kubernetes.io~local-volume');
    assert.ok(isMounted(join(global, uid)));
    assert.equal(holders(join(global, uid)).length, 1);
    await cluster.event(
      'the first',
      `MapVolume.MapPodDevice succeeded for volume "plain" globalMapPath "${global}"`,
    );
    await cluster.event(
      'the second',
      `MapVolume.MapPodDevice succeeded for volume "plain" volumeMapPath "${ofPod}"`,
    );
    const metrics = ['get', '--raw', `/api/v1/nodes/${nodeName}/proxy/metrics`];
    const size = /^kubelet_volume_stats_capacity_bytes\{.*persistentvolumeclaim="plain"\} (.+)$/m;
    await cluster.until('its size', metrics, (out) => Number(size.exec(out)?.[1]) === 64 * 2 ** 20);
    await grow('plain', '2Gi');
    await cluster.kubectl('annotate', 'pod', 'plain', 'look=now');
    const capacity = ['get', 'pvc', 'plain', '-o', 'jsonpath={.status.capacity.storage}'];
    await cluster.until('the claim to report the size', capacity, (out) => out === '2Gi');
    await cluster.kubectl('delete', 'pod', 'plain');
    await nothingLeft();
    assert.equal(readFileSync(created.device).subarray(0, 12).toString(), 'insideutside');
  });

  it('a block volume is read-only where requested, and two pods can share it', async () => {
    const created = disk('both');
    await cluster.apply(volume('both', created.device), claim('both'));
    const script = 'echo no > /dev/data && echo written || echo refused';
    await cluster.apply(pod('reads', 'both', script, true), pod('writes', 'both', script));
    await cluster.logContains('reads', 'refused');
    await cluster.logContains('writes', 'written');
    await cluster.kubectl('delete', 'pod', 'reads');
    const uid = await cluster.uidOf('writes');
    assert.deepEqual(readdirSync(join(globals(), 'both')), [uid]);
    await cluster.kubectl('delete', 'pod', 'writes');
    await nothingLeft();
  });

  it('a path that is not a device is reported', async () => {
    await cluster.apply(volume('file', folder), claim('file'), pod('file', 'file', 'echo here'));
    await cluster.event(
      'the event',
      `MapVolume.SetUpDevice failed for volume "file" : ${folder} is no block device`,
    );
    await cluster.until('its reason', ['get', 'events'], (out) => out.includes('FailedMapVolume'));
    await cluster.kubectl('delete', 'pod', 'file');
    await nothingLeft();
  });

  it('a block volume is adopted and removed by a node restarted after a kill', async () => {
    const created = disk('killed');
    await cluster.apply(
      volume('killed', created.device),
      claim('killed'),
      pod('killed', 'killed', 'echo here'),
    );
    await cluster.ready('killed');
    const uid = await cluster.uidOf('killed');
    await cluster.node.end('SIGKILL');
    await cluster.node.start();
    await cluster.until('it to run', ['get', 'pod', 'killed'], (out) => /Running\s+0/.test(out));
    assert.equal(holders(join(globals(), 'killed', uid)).length, 1);
    await cluster.kubectl('delete', 'pod', 'killed', '--wait=false');
    await cluster.node.end('SIGKILL');
    await cluster.node.start();
    await nothingLeft();
    await cluster.apply(pod('last', 'killed', 'echo here'));
    await cluster.ready('last');
    assert.equal(holders(rootDir).length, 1);
  });
});
