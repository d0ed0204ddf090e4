import assert from 'node:assert/strict';
import { dirname } from 'node:path';
import { describe, it } from 'node:test';
import { MemoryVolumeFiles } from '../../../test/fakes/memory-volume-files.ts';
import { podWith, worldUid } from '../../../test/fakes/payload-world.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import type { PersistentVolume, PersistentVolumeClaim, PodSpec, Volume } from '../../kinds/index.ts';
import { KubelingError } from '../../lib/index.ts';
import { type Pod, type PodUid, podUid } from '../../pods/index.ts';
import { LocalVolumes } from '../local/local-volumes.ts';
import type { BoundVolume } from './bound-volume.ts';
import { type BoundVolumeRecords, ClaimVolumes, type ClaimVolumesDeps } from './claim-volumes.ts';

const { signal } = new AbortController();
const otherUid = podUid('other');
const placeOf = (uid: PodUid) => `/pods/${uid}/volumes/kubernetes.io~local-volume/disk`;
const place = placeOf(worldUid);

/** Fake checkpoint of bound volumes, which survives a kubelet restart in the test. */
class Notes implements BoundVolumeRecords {
  readonly kept = new Map<PodUid, Readonly<Record<string, BoundVolume>>>();

  of(uid: PodUid) {
    return this.kept.get(uid) ?? {};
  }

  ofOtherPods(uid: PodUid | undefined) {
    return [...this.kept].flatMap(([other, volumes]) => (other === uid ? [] : Object.values(volumes)));
  }

  async record({ metadata }: Pod, volumes: Readonly<Record<string, BoundVolume>>) {
    this.kept.set(metadata.uid, volumes);
  }

  async forget(uid: PodUid) {
    this.kept.delete(uid);
  }
}

class World {
  readonly files = new MemoryVolumeFiles();
  readonly notes = new Notes();
  readonly clock = new VirtualClock();
  readonly events: string[] = [];
  readonly asked: string[] = [];
  readonly forgotten: PodUid[] = [];
  failure: Error | undefined;
  claim: PersistentVolumeClaim = { metadata: { name: 'data', namespace: 'ns', uid: 'uid-data' } };
  volume: PersistentVolume = { metadata: { name: 'disk' }, spec: { local: { path: '/mnt/disk' } } };

  /** Creates ClaimVolumes as after a kubelet restart. */
  volumes(changes: Partial<ClaimVolumesDeps> = {}): ClaimVolumes {
    const { files, notes, clock } = this;
    return new ClaimVolumes({
      claims: {
        get: async ({ namespace, name }) => {
          this.asked.push(`${namespace}/${name}`);
          if (this.failure !== undefined) throw this.failure;
          return { claim: this.claim, volume: this.volume };
        },
        forgetPod: (uid) => void this.forgotten.push(uid),
      },
      local: new LocalVolumes({ podsDir: '/pods', files, clock }),
      hostFiles: {
        kindBehind: async (path) => ((await files.kindAt(path)) === 'directory' ? 'directory' : undefined),
        makeDirectory: (path, mode) => files.makeDirectory(path, mode),
        makeFile: async () => {},
      },
      matchNode: () => 'this',
      records: notes,
      clock,
      journal: { event: (_pod, { reason, message }) => void this.events.push(`${reason} ${message}`) },
      ...changes,
    });
  }

  async disk(mode = 0o755): Promise<void> {
    await this.files.makeDirectory('/mnt/disk', mode);
    await this.files.writeFile('/mnt/disk/canary', Buffer.from('alive'), { mode: 0o600 });
  }

  spec(spec: PersistentVolume['spec']): void {
    this.volume = { ...this.volume, spec };
  }
}

const claimed: Volume = { name: 'v', persistentVolumeClaim: { claimName: 'data' } };

function podOf(volume: Volume = claimed, spec: Partial<PodSpec> = {}, uid = worldUid): Pod {
  const pod = podWith([volume], spec);
  return { ...pod, metadata: { ...pod.metadata, uid } };
}

/** Returns the location of the pod's mounted volume. */
function mountOf(volumes: ClaimVolumes, pod = podOf()) {
  const found = volumes.of(pod).get('v');
  return found?.kind === 'path' ? found : undefined;
}

async function messages(volumes: ClaimVolumes, pod = podOf()): Promise<readonly string[]> {
  return (await volumes.prepare(pod, signal)).map(({ message }) => message);
}

describe('claimed volumes', () => {
  it('bind-mounts a local volume into the pod directory and keeps its content after the pod', async () => {
    const environment = new World();
    await environment.disk();
    const volumes = environment.volumes();
    assert.deepEqual([...volumes.of(podOf())], []);
    assert.deepEqual(await messages(volumes), []);
    assert.deepEqual(environment.files.binds(), [{ directory: place, source: '/mnt/disk', options: '' }]);
    assert.deepEqual(volumes.of(podOf()).get('v'), {
      kind: 'path',
      hostPath: place,
      readOnly: false,
      relabel: true,
      specName: 'disk',
    });
    await volumes.remove(worldUid, signal);
    assert.deepEqual(environment.files.binds(), []);
    assert.equal(environment.files.text('/mnt/disk/canary'), 'alive');
    assert.equal(
      await environment.files.kindAt(`/pods/${worldUid}/volumes/kubernetes.io~local-volume`),
      undefined,
    );
    assert.deepEqual(
      [environment.forgotten, [...environment.notes.kept], environment.events],
      [[worldUid], [], []],
    );
    await volumes.remove(worldUid, signal);
  });

  it('uses a hostPath PersistentVolume at its own path and creates the path when the type requires that', async () => {
    const environment = new World();
    environment.spec({ hostPath: { path: '/srv/new', type: 'DirectoryOrCreate' } });
    const volumes = environment.volumes();
    assert.deepEqual(await messages(volumes), []);
    assert.equal(mountOf(volumes)?.hostPath, '/srv/new');
    assert.equal(await environment.files.kindAt('/srv/new'), 'directory');
    await volumes.remove(worldUid, signal);
    assert.equal(await environment.files.kindAt('/srv/new'), 'directory');
  });

  it('mounts a claimed volume read-only where the pod requires it, with the mount options of the PersistentVolume', async () => {
    const environment = new World();
    await environment.disk();
    environment.spec({ local: { path: '/mnt/disk' }, mountOptions: ['noatime', 'nodev'] });
    const readOnly = { name: 'v', persistentVolumeClaim: { claimName: 'data', readOnly: true } };
    const volumes = environment.volumes();
    assert.deepEqual(await messages(volumes, podOf(readOnly)), []);
    assert.deepEqual(environment.files.binds()[0]?.options, 'ro,noatime,nodev');
    const found = mountOf(volumes, podOf(readOnly));
    assert.deepEqual([found?.readOnly, found?.relabel], [true, false]);
    environment.volume = {
      ...environment.volume,
      metadata: { name: 'disk', annotations: { 'volume.beta.kubernetes.io/mount-options': 'noexec' } },
    };
    await volumes.remove(worldUid, signal);
    assert.deepEqual(await messages(volumes), []);
    assert.deepEqual(environment.files.binds()[0]?.options, 'noexec');
  });

  for (const order of [
    ['r', 'w'],
    ['w', 'r'],
  ])
    it(`mounts writable when one of several volumes of the same claim is writable, in the order ${order[0]}`, async () => {
      const environment = new World();
      await environment.disk();
      const uses = order.map((name) => {
        return { name, persistentVolumeClaim: { claimName: 'data', readOnly: name === 'r' } };
      });
      const volumes = environment.volumes();
      for (let tries = 0; tries < 2; tries++) assert.deepEqual(await messages(volumes, podWith(uses)), []);
      assert.deepEqual(environment.files.binds(), [{ directory: place, source: '/mnt/disk', options: '' }]);
      const found = [...volumes.of(podWith(uses))].map(([name, of]) => {
        return [name, of.kind === 'path' ? of.hostPath : '', of.readOnly];
      });
      assert.deepEqual(
        found,
        order.map((name) => [name, place, name === 'r']),
      );
    });

  it('does not read a claim that no container uses', async () => {
    const environment = new World();
    const pod = podOf(claimed, { containers: [{ name: 'main', image: 'i' }] });
    assert.deepEqual(await environment.volumes().prepare(pod, signal), []);
    assert.deepEqual(environment.asked, []);
  });

  it('reads a claim once in the lifetime of a pod and once more after a restart', async () => {
    const environment = new World();
    await environment.disk();
    const volumes = environment.volumes();
    await volumes.prepare(podOf(), signal);
    await volumes.prepare(podOf(), signal);
    assert.deepEqual(environment.asked, ['ns/data']);
    const later = environment.volumes();
    assert.equal(mountOf(later)?.hostPath, place, 'recorded without a request');
    await later.refresh(podOf(), signal);
    assert.deepEqual(environment.asked, ['ns/data']);
    await later.prepare(podOf(), signal);
    assert.deepEqual(environment.asked, ['ns/data', 'ns/data']);
    assert.equal(environment.files.binds().length, 1);
  });

  it('uses the recorded volume while the API server is unreachable, but not when the API server reports that the claim is not bound', async () => {
    const environment = new World();
    await environment.disk();
    await environment.volumes().prepare(podOf(), signal);
    environment.failure = new KubelingError('CLAIM_UNREAD', 'failed to fetch PVC from API server: away');
    assert.deepEqual(await messages(environment.volumes()), []);
    environment.failure = new KubelingError('CLAIM_UNBOUND', 'PVC is not bound');
    assert.deepEqual(await messages(environment.volumes()), [
      'error processing PVC ns/data: PVC is not bound',
    ]);
    environment.failure = new KubelingError('CLAIM_UNREAD', 'failed to fetch PVC from API server: away');
    const fresh = podOf({ name: 'v', persistentVolumeClaim: { claimName: 'another' } });
    assert.deepEqual(await messages(environment.volumes(), fresh), [
      'error processing PVC ns/another: failed to fetch PVC from API server: away',
    ]);
  });

  it('resolves the claim of a running pod whose volume a previous kubelet mounted without recording it', async () => {
    const environment = new World();
    await environment.disk();
    const volumes = environment.volumes();
    environment.failure = new KubelingError('CLAIM_UNREAD', 'away');
    await volumes.refresh(podOf(), signal);
    assert.equal(volumes.of(podOf()).size, 0);
    environment.failure = undefined;
    await volumes.refresh(podOf(), signal);
    assert.equal(mountOf(volumes)?.hostPath, place);
    assert.equal(environment.files.binds().length, 1);
  });

  it("returns the supplementary group from the PersistentVolume's annotation for the containers", async () => {
    const environment = new World();
    await environment.disk();
    environment.volume = {
      ...environment.volume,
      metadata: { name: 'disk', annotations: { 'pv.beta.kubernetes.io/gid': '1234' } },
    };
    const volumes = environment.volumes();
    await volumes.prepare(podOf(), signal);
    assert.deepEqual(volumes.groupsOf(worldUid), [1234]);
  });

  it('rejects a claimed volume on a node without an API server', async () => {
    const volumes = new World().volumes({ claims: undefined });
    assert.deepEqual(await messages(volumes), [
      'error processing PVC ns/data: this node has no API server to ask for it',
    ]);
  });
});

describe('claimed volumes that cannot be mounted', () => {
  const required = { nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }] };
  const local = { path: '/mnt/disk' };
  const said = (stage: string, why: string) => [`${stage} for volume "disk" : ${why}`];
  type Case = readonly [string, PersistentVolume['spec'], Partial<ClaimVolumesDeps>, readonly string[]];
  const cases: readonly Case[] = [
    [
      'belongs to other nodes',
      { local, nodeAffinity: { required } },
      { matchNode: () => 'others' },
      said('MountVolume.NodeAffinity check failed', 'no matching NodeSelectorTerms'),
    ],
    [
      'requires node labels before the Node object was received',
      { local, nodeAffinity: { required } },
      { matchNode: () => 'unknown' },
      said('MountVolume.NodeAffinity check failed', 'the labels of this node are not known yet'),
    ],
    [
      'has a type this node cannot mount',
      { csi: { driver: 'd', volumeHandle: 'h' } },
      {},
      said(
        'MountVolume.NewMounter initialization failed',
        'volumes of the kind csi are not supported by this node yet',
      ),
    ],
    [
      'is an NFS volume on a node without NFS support',
      { capacity: { storage: '1Gi' }, nfs: { server: 's', path: '/' } },
      {},
      said(
        'MountVolume.NewMounter initialization failed',
        'volumes of the kind nfs are not supported by this node yet',
      ),
    ],
    [
      'has mount options that its type does not support',
      { hostPath: { path: '/mnt/disk' }, mountOptions: ['noatime'] },
      {},
      said(
        'MountVolume.MountOptionSupport check failed',
        'mount options are not supported for this volume type',
      ),
    ],
    [
      'does not exist',
      { local: { path: '/mnt/nowhere' } },
      {},
      said('MountVolume.NewMounter initialization failed', 'path "/mnt/nowhere" does not exist'),
    ],
    [
      'is not a directory',
      { local: { path: '/mnt/disk/canary' } },
      {},
      said('MountVolume.NewMounter initialization failed', 'only directory and block device are supported'),
    ],
    [
      'is a path with ..',
      { local: { path: '/mnt/../mnt/disk' } },
      {},
      said('MountVolume.SetUp failed', "invalid path: /mnt/../mnt/disk must not contain '..'"),
    ],
    [
      'is a hostPath with ..',
      { hostPath: { path: '/mnt/../disk' } },
      {},
      said('MountVolume.SetUp failed', "invalid HostPath `/mnt/../disk`: must not contain '..'"),
    ],
    [
      'does not match its hostPath type',
      { hostPath: { path: '/mnt/nowhere', type: 'Directory' } },
      {},
      said('MountVolume.SetUp failed', 'hostPath type check failed: /mnt/nowhere is not a directory'),
    ],
    [
      'is a raw block volume in volumeMounts',
      { local, volumeMode: 'Block' },
      {},
      ['volume v has volumeMode Block, but is specified in volumeMounts'],
    ],
  ];
  for (const [what, spec, changes, expected] of cases)
    it(`an error names the failed step: ${what}`, async () => {
      const environment = new World();
      await environment.disk();
      environment.spec(spec);
      const volumes = environment.volumes(changes);
      assert.deepEqual(await messages(volumes), expected);
      assert.deepEqual([volumes.of(podOf()).size, environment.files.binds().length], [0, 0]);
      assert.deepEqual(environment.notes.ofOtherPods(otherUid), []);
    });

  it('retries a mount soon after a temporary failure', async () => {
    const environment = new World();
    environment.spec({ local, nodeAffinity: { required } });
    const [problem] = await environment.volumes({ matchNode: () => 'unknown' }).prepare(podOf(), signal);
    assert.equal(problem?.kind === 'unmounted' && problem.retryAtMs, environment.clock.monotonicMs() + 1_000);
  });

  const asDevice = (): Pod => {
    const container = { name: 'main', image: 'i', volumeDevices: [{ name: 'v', devicePath: '/dev/v' }] };
    return podOf(claimed, { containers: [container] });
  };

  it('rejects a volume with mode Filesystem in volumeDevices', async () => {
    const environment = new World();
    assert.deepEqual(await messages(environment.volumes(), asDevice()), [
      'volume v has volumeMode Filesystem, but is specified in volumeDevices',
    ]);
    environment.spec({ local, volumeMode: 'Block' });
    assert.deepEqual(await environment.volumes().prepare(asDevice(), signal), [
      {
        kind: 'unmounted',
        volume: 'v',
        reason: 'FailedMapVolume',
        message:
          'MapVolume.NewBlockVolumeMapper initialization failed for volume "disk" : volumes of the mode Block and the kind local are not supported by this node',
      },
    ]);
  });

  it('rejects a mount path that is a symbolic link, and keeps the files of its target', async () => {
    const environment = new World();
    await environment.disk();
    await environment.files.makeDirectory(dirname(place), 0o750);
    await environment.files.link('/mnt/disk', place);
    const volumes = environment.volumes();
    assert.match((await messages(volumes))[0] ?? '', /is not a directory$/);
    await assert.rejects(volumes.remove(worldUid, signal), { code: 'VOLUME_REMOVE' });
    assert.equal(environment.files.text('/mnt/disk/canary'), 'alive');
  });

  it('rejects the removal of a mounted volume that is in use', async () => {
    const environment = new World();
    await environment.disk();
    const volumes = environment.volumes();
    await volumes.prepare(podOf(), signal);
    environment.files.busy.add(place);
    const removal = assert.rejects(volumes.remove(worldUid, signal), { message: `${place} is still in use` });
    await environment.clock.advance(10_000);
    await removal;
    environment.files.busy.clear();
    await volumes.remove(worldUid, signal);
    assert.equal(environment.files.text('/mnt/disk/canary'), 'alive');
  });

  it('keeps a mount directory with content where nothing is mounted', async () => {
    const environment = new World();
    await environment.files.writeFile(`${place}/canary`, Buffer.from('alive'), { mode: 0o600 });
    await assert.rejects(environment.volumes().remove(worldUid, signal), { code: 'VOLUME_REMOVE' });
    assert.equal(environment.files.text(`${place}/canary`), 'alive');
  });
});

describe('ReadWriteOncePod volumes', () => {
  const modes = { local: { path: '/mnt/disk' }, accessModes: ['ReadWriteOncePod'] };

  it('rejects the second pod with a ReadWriteOncePod volume until the first pod is removed', async () => {
    const environment = new World();
    await environment.disk();
    environment.spec(modes);
    const volumes = environment.volumes();
    const second = podOf(claimed, {}, otherUid);
    assert.deepEqual(await messages(volumes), []);
    const refusal =
      'MountVolume.SetUp failed for volume "disk" : volume uses the ReadWriteOncePod access mode and is already in use by another pod';
    assert.deepEqual(await messages(volumes, second), [refusal]);
    assert.deepEqual(await messages(environment.volumes(), second), [refusal], 'also after a restart');
    assert.deepEqual(await messages(volumes), [], 'the first pod may set it up again');
    await volumes.remove(worldUid, signal);
    assert.deepEqual(await messages(volumes, second), []);
  });

  it('a failed mount of a ReadWriteOncePod volume does not block other pods', async () => {
    const environment = new World();
    environment.spec(modes);
    const volumes = environment.volumes();
    assert.equal((await messages(volumes)).length, 1);
    await environment.disk();
    assert.deepEqual(await messages(volumes, podOf(claimed, {}, otherUid)), []);
  });

  it('of two concurrent pods one gets the ReadWriteOncePod volume', async () => {
    const environment = new World();
    await environment.disk();
    environment.spec(modes);
    const volumes = environment.volumes();
    const both = await Promise.all([messages(volumes), messages(volumes, podOf(claimed, {}, otherUid))]);
    assert.deepEqual(both.map(({ length }) => length).toSorted(), [0, 1]);
  });
});

describe('fsGroup of a claimed volume', () => {
  const grouped = (fsGroup: number, uid = worldUid, policy?: string) => {
    const securityContext = { fsGroup, ...(policy !== undefined && { fsGroupChangePolicy: policy }) };
    return podOf(claimed, { securityContext }, uid);
  };
  const groups = ({ files }: World) =>
    ['/mnt/disk', '/mnt/disk/canary'].map((path) => files.entry(path)?.group);

  it('sets the fsGroup for the first pod and reports a conflict to a later pod with another group', async () => {
    const environment = new World();
    await environment.disk();
    const volumes = environment.volumes();
    assert.deepEqual(await messages(volumes, grouped(77)), []);
    assert.deepEqual(groups(environment), [77, 77]);
    assert.deepEqual(environment.events, []);
    assert.deepEqual(await messages(volumes, grouped(88, otherUid)), []);
    assert.deepEqual(groups(environment), [77, 77]);
    assert.deepEqual(environment.events, [
      'AlreadyMountedVolume The requested fsGroup is 88, but the volume disk has GID 77. The volume may not be shareable.',
    ]);
    await volumes.remove(worldUid, signal);
    await volumes.remove(otherUid, signal);
    assert.deepEqual(await messages(volumes, grouped(88, otherUid)), []);
    assert.deepEqual(groups(environment), [88, 88]);
  });

  it('sets the group of all files only once, even when the first mount is cancelled', async () => {
    const environment = new World();
    await environment.disk();
    const given: string[] = [];
    const gate = Promise.withResolvers<void>();
    const asIs = environment.files.giveToGroup.bind(environment.files);
    environment.files.giveToGroup = async (...what) => {
      given.push(what[0]);
      await gate.promise;
      await asIs(...what);
    };
    const volumes = environment.volumes();
    const impatient = new AbortController();
    const first = volumes.prepare(grouped(77), impatient.signal);
    await environment.clock.advance(1_000);
    impatient.abort(new Error('the sync was cancelled'));
    gate.resolve();
    await assert.rejects(first, { message: 'the sync was cancelled' });
    assert.deepEqual(environment.files.binds(), []);
    assert.deepEqual(await messages(volumes, grouped(77)), []);
    assert.deepEqual([given, environment.files.binds().length], [['/mnt/disk'], 1]);
  });

  it('does not change the group of files in a read-only volume', async () => {
    const environment = new World();
    await environment.disk();
    const readOnly = { name: 'v', persistentVolumeClaim: { claimName: 'data', readOnly: true } };
    await environment.volumes().prepare(podOf(readOnly, { securityContext: { fsGroup: 77 } }), signal);
    assert.deepEqual(groups(environment), [0, 0]);
  });

  it('under OnRootMismatch does not walk a volume whose root directory has the group', async () => {
    const environment = new World();
    await environment.disk(0o770);
    const volumes = environment.volumes();
    await volumes.prepare(grouped(77, worldUid, 'OnRootMismatch'), signal);
    assert.deepEqual(groups(environment), [77, 77]);
    await volumes.remove(worldUid, signal);
    await environment.files.writeFile('/mnt/disk/new', Buffer.from(''), { mode: 0o600 });
    await volumes.prepare(grouped(77, worldUid, 'OnRootMismatch'), signal);
    assert.equal(environment.files.entry('/mnt/disk/new')?.group, 0);
    await volumes.remove(worldUid, signal);
    await volumes.prepare(grouped(77), signal);
    assert.equal(environment.files.entry('/mnt/disk/new')?.group, 77);
  });
});

describe('ephemeral volume claims', () => {
  const own: Volume = {
    name: 'v',
    ephemeral: {
      volumeClaimTemplate: {
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
    },
  };

  it("derives the claim name from the pod and the volume, and requires the pod as the claim's owner", async () => {
    const environment = new World();
    await environment.disk();
    const owner = { apiVersion: 'v1', kind: 'Pod', name: 'pod', uid: 'earlier', controller: true };
    const metadata = { name: 'pod-v', namespace: 'ns', uid: 'uid-data' };
    environment.claim = { metadata: { ...metadata, ownerReferences: [owner] } };
    const volumes = environment.volumes();
    assert.deepEqual(await messages(volumes, podOf(own)), [
      'PVC ns/pod-v was not created for pod ns/pod (pod is not owner)',
    ]);
    environment.claim = { metadata: { ...metadata, ownerReferences: [{ ...owner, uid: worldUid }] } };
    assert.deepEqual(await messages(volumes, podOf(own)), []);
    assert.deepEqual(environment.asked, ['ns/pod-v', 'ns/pod-v']);
    assert.equal(mountOf(volumes, podOf(own))?.hostPath, place);
  });
});
