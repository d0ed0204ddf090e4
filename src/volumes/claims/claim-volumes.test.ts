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

/** The notes of a kubelet, which outlive it. */
class Notes implements BoundVolumeRecords {
  readonly kept = new Map<PodUid, Readonly<Record<string, BoundVolume>>>();

  of(uid: PodUid) {
    return this.kept.get(uid) ?? {};
  }

  others(uid: PodUid | undefined) {
    return [...this.kept].flatMap(([other, volumes]) => (other === uid ? [] : Object.values(volumes)));
  }

  async note({ metadata }: Pod, volumes: Readonly<Record<string, BoundVolume>>) {
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

  /** As a kubelet has them that has just begun. */
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
      judgeNode: () => 'this',
      notes,
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

/** Of a volume that is mounted. */
function mountOf(volumes: ClaimVolumes, pod = podOf()) {
  const found = volumes.of(pod).get('v');
  return found?.kind === 'path' ? found : undefined;
}

async function messages(volumes: ClaimVolumes, pod = podOf()): Promise<readonly string[]> {
  return (await volumes.make(pod, signal)).map(({ message }) => message);
}

describe('a claimed volume', () => {
  it('of the kind local is shown in the directory of the pod, and its content outlives the pod', async () => {
    const world = new World();
    await world.disk();
    const volumes = world.volumes();
    assert.deepEqual([...volumes.of(podOf())], []);
    assert.deepEqual(await messages(volumes), []);
    assert.deepEqual(world.files.binds(), [{ directory: place, source: '/mnt/disk', options: '' }]);
    assert.deepEqual(volumes.of(podOf()).get('v'), {
      kind: 'path',
      hostPath: place,
      readOnly: false,
      relabel: true,
      specName: 'disk',
    });
    await volumes.remove(worldUid, signal);
    assert.deepEqual(world.files.binds(), []);
    assert.equal(world.files.text('/mnt/disk/canary'), 'alive');
    assert.equal(await world.files.kindAt(`/pods/${worldUid}/volumes/kubernetes.io~local-volume`), undefined);
    assert.deepEqual([world.forgotten, [...world.notes.kept], world.events], [[worldUid], [], []]);
    await volumes.remove(worldUid, signal);
  });

  it('of the kind hostPath is used where it is, and made if its type says so', async () => {
    const world = new World();
    world.spec({ hostPath: { path: '/srv/new', type: 'DirectoryOrCreate' } });
    const volumes = world.volumes();
    assert.deepEqual(await messages(volumes), []);
    assert.equal(mountOf(volumes)?.hostPath, '/srv/new');
    assert.equal(await world.files.kindAt('/srv/new'), 'directory');
    await volumes.remove(worldUid, signal);
    assert.equal(await world.files.kindAt('/srv/new'), 'directory');
  });

  it('is read-only where the pod says so, and has the options of the volume', async () => {
    const world = new World();
    await world.disk();
    world.spec({ local: { path: '/mnt/disk' }, mountOptions: ['noatime', 'nodev'] });
    const readOnly = { name: 'v', persistentVolumeClaim: { claimName: 'data', readOnly: true } };
    const volumes = world.volumes();
    assert.deepEqual(await messages(volumes, podOf(readOnly)), []);
    assert.deepEqual(world.files.binds()[0]?.options, 'ro,noatime,nodev');
    const found = mountOf(volumes, podOf(readOnly));
    assert.deepEqual([found?.readOnly, found?.relabel], [true, false]);
    world.volume = {
      ...world.volume,
      metadata: { name: 'disk', annotations: { 'volume.beta.kubernetes.io/mount-options': 'noexec' } },
    };
    await volumes.remove(worldUid, signal);
    assert.deepEqual(await messages(volumes), []);
    assert.deepEqual(world.files.binds()[0]?.options, 'noexec');
  });

  for (const order of [
    ['r', 'w'],
    ['w', 'r'],
  ])
    it(`is to be written to where one of several uses of its claim may, whichever comes first: ${order[0]}`, async () => {
      const world = new World();
      await world.disk();
      const uses = order.map((name) => {
        return { name, persistentVolumeClaim: { claimName: 'data', readOnly: name === 'r' } };
      });
      const volumes = world.volumes();
      for (let tries = 0; tries < 2; tries++) assert.deepEqual(await messages(volumes, podWith(uses)), []);
      assert.deepEqual(world.files.binds(), [{ directory: place, source: '/mnt/disk', options: '' }]);
      const found = [...volumes.of(podWith(uses))].map(([name, of]) => {
        return [name, of.kind === 'path' ? of.hostPath : '', of.readOnly];
      });
      assert.deepEqual(
        found,
        order.map((name) => [name, place, name === 'r']),
      );
    });

  it('that no container uses is not asked for', async () => {
    const world = new World();
    const pod = podOf(claimed, { containers: [{ name: 'main', image: 'i' }] });
    assert.deepEqual(await world.volumes().make(pod, signal), []);
    assert.deepEqual(world.asked, []);
  });

  it('is asked for once in the life of the pod, and once more by the next kubelet', async () => {
    const world = new World();
    await world.disk();
    const volumes = world.volumes();
    await volumes.make(podOf(), signal);
    await volumes.make(podOf(), signal);
    assert.deepEqual(world.asked, ['ns/data']);
    const later = world.volumes();
    assert.equal(mountOf(later)?.hostPath, place, 'known without asking');
    await later.refresh(podOf(), signal);
    assert.deepEqual(world.asked, ['ns/data']);
    await later.make(podOf(), signal);
    assert.deepEqual(world.asked, ['ns/data', 'ns/data']);
    assert.equal(world.files.binds().length, 1);
  });

  it('is what it was while the API is away, but not against what the API says', async () => {
    const world = new World();
    await world.disk();
    await world.volumes().make(podOf(), signal);
    world.failure = new KubelingError('CLAIM_UNREAD', 'failed to fetch PVC from API server: away');
    assert.deepEqual(await messages(world.volumes()), []);
    world.failure = new KubelingError('CLAIM_UNBOUND', 'PVC is not bound');
    assert.deepEqual(await messages(world.volumes()), ['error processing PVC ns/data: PVC is not bound']);
    world.failure = new KubelingError('CLAIM_UNREAD', 'failed to fetch PVC from API server: away');
    const fresh = podOf({ name: 'v', persistentVolumeClaim: { claimName: 'another' } });
    assert.deepEqual(await messages(world.volumes(), fresh), [
      'error processing PVC ns/another: failed to fetch PVC from API server: away',
    ]);
  });

  it('of a pod that an earlier kubelet left running without a note is found out about', async () => {
    const world = new World();
    await world.disk();
    const volumes = world.volumes();
    world.failure = new KubelingError('CLAIM_UNREAD', 'away');
    await volumes.refresh(podOf(), signal);
    assert.equal(volumes.of(podOf()).size, 0);
    world.failure = undefined;
    await volumes.refresh(podOf(), signal);
    assert.equal(mountOf(volumes)?.hostPath, place);
    assert.equal(world.files.binds().length, 1);
  });

  it('puts its users into the group it names', async () => {
    const world = new World();
    await world.disk();
    world.volume = {
      ...world.volume,
      metadata: { name: 'disk', annotations: { 'pv.beta.kubernetes.io/gid': '1234' } },
    };
    const volumes = world.volumes();
    await volumes.make(podOf(), signal);
    assert.deepEqual(volumes.groupsOf(worldUid), [1234]);
  });

  it('cannot be had on a node without an API', async () => {
    const volumes = new World().volumes({ claims: undefined });
    assert.deepEqual(await messages(volumes), [
      'error processing PVC ns/data: this node has no API server to ask for it',
    ]);
  });
});

describe('a claimed volume that cannot be had', () => {
  const required = { nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }] };
  const local = { path: '/mnt/disk' };
  const said = (stage: string, why: string) => [`${stage} for volume "disk" : ${why}`];
  type Case = readonly [string, PersistentVolume['spec'], Partial<ClaimVolumesDeps>, readonly string[]];
  const cases: readonly Case[] = [
    [
      'belongs to other nodes',
      { local, nodeAffinity: { required } },
      { judgeNode: () => 'others' },
      said('MountVolume.NodeAffinity check failed', 'no matching NodeSelectorTerms'),
    ],
    [
      'belongs to some nodes while this one does not know itself',
      { local, nodeAffinity: { required } },
      { judgeNode: () => 'unknown' },
      said('MountVolume.NodeAffinity check failed', 'the labels of this node are not known yet'),
    ],
    [
      'is of a kind this node cannot mount',
      { csi: { driver: 'd', volumeHandle: 'h' } },
      {},
      said(
        'MountVolume.NewMounter initialization failed',
        'volumes of the kind csi are not supported by this node yet',
      ),
    ],
    [
      'is somewhere else on the network',
      { capacity: { storage: '1Gi' }, nfs: { server: 's', path: '/' } },
      {},
      said(
        'MountVolume.NewMounter initialization failed',
        'volumes of the kind nfs are not supported by this node yet',
      ),
    ],
    [
      'has options its kind cannot have',
      { hostPath: { path: '/mnt/disk' }, mountOptions: ['noatime'] },
      {},
      said(
        'MountVolume.MountOptionSupport check failed',
        'mount options are not supported for this volume type',
      ),
    ],
    [
      'is not there',
      { local: { path: '/mnt/nowhere' } },
      {},
      said('MountVolume.NewMounter initialization failed', 'path "/mnt/nowhere" does not exist'),
    ],
    [
      'is no directory',
      { local: { path: '/mnt/disk/canary' } },
      {},
      said('MountVolume.NewMounter initialization failed', 'only directory and block device are supported'),
    ],
    [
      'is a path with steps back',
      { local: { path: '/mnt/../mnt/disk' } },
      {},
      said('MountVolume.SetUp failed', "invalid path: /mnt/../mnt/disk must not contain '..'"),
    ],
    [
      'is a path of the host with steps back',
      { hostPath: { path: '/mnt/../disk' } },
      {},
      said('MountVolume.SetUp failed', "invalid HostPath `/mnt/../disk`: must not contain '..'"),
    ],
    [
      'is not what its type says',
      { hostPath: { path: '/mnt/nowhere', type: 'Directory' } },
      {},
      said('MountVolume.SetUp failed', 'hostPath type check failed: /mnt/nowhere is not a directory'),
    ],
    [
      'is a raw device that is to be mounted',
      { local, volumeMode: 'Block' },
      {},
      ['volume v has volumeMode Block, but is specified in volumeMounts'],
    ],
  ];
  for (const [what, spec, changes, expected] of cases)
    it(`as it ${what} says so`, async () => {
      const world = new World();
      await world.disk();
      world.spec(spec);
      const volumes = world.volumes(changes);
      assert.deepEqual(await messages(volumes), expected);
      assert.deepEqual([volumes.of(podOf()).size, world.files.binds().length], [0, 0]);
      assert.deepEqual(world.notes.others(otherUid), []);
    });

  it('for now is tried again soon', async () => {
    const world = new World();
    world.spec({ local, nodeAffinity: { required } });
    const [problem] = await world.volumes({ judgeNode: () => 'unknown' }).make(podOf(), signal);
    assert.equal(problem?.kind === 'unmounted' && problem.retryAtMs, world.clock.monotonicMs() + 1_000);
  });

  const asDevice = (): Pod => {
    const container = { name: 'main', image: 'i', volumeDevices: [{ name: 'v', devicePath: '/dev/v' }] };
    return podOf(claimed, { containers: [container] });
  };

  it('as a device says so', async () => {
    const world = new World();
    assert.deepEqual(await messages(world.volumes(), asDevice()), [
      'volume v has volumeMode Filesystem, but is specified in volumeDevices',
    ]);
    world.spec({ local, volumeMode: 'Block' });
    assert.deepEqual(await world.volumes().make(asDevice(), signal), [
      {
        kind: 'unmounted',
        volume: 'v',
        reason: 'FailedMapVolume',
        message:
          'MapVolume.NewBlockVolumeMapper initialization failed for volume "disk" : volumes of the mode Block and the kind local are not supported by this node',
      },
    ]);
  });

  it('leaves what others have put at its place alone', async () => {
    const world = new World();
    await world.disk();
    await world.files.makeDirectory(dirname(place), 0o750);
    await world.files.link('/mnt/disk', place);
    const volumes = world.volumes();
    assert.match((await messages(volumes))[0] ?? '', /is no directory$/);
    await assert.rejects(volumes.remove(worldUid, signal), { code: 'VOLUME_REMOVE' });
    assert.equal(world.files.text('/mnt/disk/canary'), 'alive');
  });

  it('while it is in use says so when it is to be taken away', async () => {
    const world = new World();
    await world.disk();
    const volumes = world.volumes();
    await volumes.make(podOf(), signal);
    world.files.busy.add(place);
    const removal = assert.rejects(volumes.remove(worldUid, signal), { message: `${place} is still in use` });
    await world.clock.advance(10_000);
    await removal;
    world.files.busy.clear();
    await volumes.remove(worldUid, signal);
    assert.equal(world.files.text('/mnt/disk/canary'), 'alive');
  });

  it('by a directory with content where nothing is mounted is left as it is', async () => {
    const world = new World();
    await world.files.writeFile(`${place}/canary`, Buffer.from('alive'), { mode: 0o600 });
    await assert.rejects(world.volumes().remove(worldUid, signal), { code: 'VOLUME_REMOVE' });
    assert.equal(world.files.text(`${place}/canary`), 'alive');
  });
});

describe('a volume for one pod at a time', () => {
  const modes = { local: { path: '/mnt/disk' }, accessModes: ['ReadWriteOncePod'] };

  it('is refused to the second, until the first is gone', async () => {
    const world = new World();
    await world.disk();
    world.spec(modes);
    const volumes = world.volumes();
    const second = podOf(claimed, {}, otherUid);
    assert.deepEqual(await messages(volumes), []);
    const refusal =
      'MountVolume.SetUp failed for volume "disk" : volume uses the ReadWriteOncePod access mode and is already in use by another pod';
    assert.deepEqual(await messages(volumes, second), [refusal]);
    assert.deepEqual(await messages(world.volumes(), second), [refusal], 'by the next kubelet too');
    assert.deepEqual(await messages(volumes), [], 'the first may come again');
    await volumes.remove(worldUid, signal);
    assert.deepEqual(await messages(volumes, second), []);
  });

  it('is not kept from others by one that could not have it', async () => {
    const world = new World();
    world.spec(modes);
    const volumes = world.volumes();
    assert.equal((await messages(volumes)).length, 1);
    await world.disk();
    assert.deepEqual(await messages(volumes, podOf(claimed, {}, otherUid)), []);
  });

  it('goes to one of two that come at once', async () => {
    const world = new World();
    await world.disk();
    world.spec(modes);
    const volumes = world.volumes();
    const both = await Promise.all([messages(volumes), messages(volumes, podOf(claimed, {}, otherUid))]);
    assert.deepEqual(both.map(({ length }) => length).toSorted(), [0, 1]);
  });
});

describe('the group of a pod', () => {
  const grouped = (fsGroup: number, uid = worldUid, policy?: string) => {
    const securityContext = { fsGroup, ...(policy !== undefined && { fsGroupChangePolicy: policy }) };
    return podOf(claimed, { securityContext }, uid);
  };
  const groups = ({ files }: World) =>
    ['/mnt/disk', '/mnt/disk/canary'].map((path) => files.entry(path)?.group);

  it('is given the files of a volume it is the first to use; the next of another group is told', async () => {
    const world = new World();
    await world.disk();
    const volumes = world.volumes();
    assert.deepEqual(await messages(volumes, grouped(77)), []);
    assert.deepEqual(groups(world), [77, 77]);
    assert.deepEqual(world.events, []);
    assert.deepEqual(await messages(volumes, grouped(88, otherUid)), []);
    assert.deepEqual(groups(world), [77, 77]);
    assert.deepEqual(world.events, [
      'AlreadyMountedVolume The requested fsGroup is 88, but the volume disk has GID 77. The volume may not be shareable.',
    ]);
    await volumes.remove(worldUid, signal);
    await volumes.remove(otherUid, signal);
    assert.deepEqual(await messages(volumes, grouped(88, otherUid)), []);
    assert.deepEqual(groups(world), [88, 88]);
  });

  it('is given all files once, though nobody waited for so many to be given', async () => {
    const world = new World();
    await world.disk();
    const given: string[] = [];
    const gate = Promise.withResolvers<void>();
    const asIs = world.files.giveToGroup.bind(world.files);
    world.files.giveToGroup = async (...what) => {
      given.push(what[0]);
      await gate.promise;
      await asIs(...what);
    };
    const volumes = world.volumes();
    const impatient = new AbortController();
    const first = volumes.make(grouped(77), impatient.signal);
    await world.clock.advance(1_000);
    impatient.abort(new Error('too long'));
    gate.resolve();
    await assert.rejects(first, { message: 'too long' });
    assert.deepEqual(world.files.binds(), []);
    assert.deepEqual(await messages(volumes, grouped(77)), []);
    assert.deepEqual([given, world.files.binds().length], [['/mnt/disk'], 1]);
  });

  it('gets nothing of a volume it may only read', async () => {
    const world = new World();
    await world.disk();
    const readOnly = { name: 'v', persistentVolumeClaim: { claimName: 'data', readOnly: true } };
    await world.volumes().make(podOf(readOnly, { securityContext: { fsGroup: 77 } }), signal);
    assert.deepEqual(groups(world), [0, 0]);
  });

  it('is not given again what is its own already, where the pod asks to look at the root only', async () => {
    const world = new World();
    await world.disk(0o770);
    const volumes = world.volumes();
    await volumes.make(grouped(77, worldUid, 'OnRootMismatch'), signal);
    assert.deepEqual(groups(world), [77, 77]);
    await volumes.remove(worldUid, signal);
    await world.files.writeFile('/mnt/disk/new', Buffer.from(''), { mode: 0o600 });
    await volumes.make(grouped(77, worldUid, 'OnRootMismatch'), signal);
    assert.equal(world.files.entry('/mnt/disk/new')?.group, 0);
    await volumes.remove(worldUid, signal);
    await volumes.make(grouped(77), signal);
    assert.equal(world.files.entry('/mnt/disk/new')?.group, 77);
  });
});

describe('a claim that is made for the pod', () => {
  const own: Volume = {
    name: 'v',
    ephemeral: {
      volumeClaimTemplate: {
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
    },
  };

  it('has the name of the pod and the volume, and must be the own one of the pod', async () => {
    const world = new World();
    await world.disk();
    const owner = { apiVersion: 'v1', kind: 'Pod', name: 'pod', uid: 'earlier', controller: true };
    const metadata = { name: 'pod-v', namespace: 'ns', uid: 'uid-data' };
    world.claim = { metadata: { ...metadata, ownerReferences: [owner] } };
    const volumes = world.volumes();
    assert.deepEqual(await messages(volumes, podOf(own)), [
      'PVC ns/pod-v was not created for pod ns/pod (pod is not owner)',
    ]);
    world.claim = { metadata: { ...metadata, ownerReferences: [{ ...owner, uid: worldUid }] } };
    assert.deepEqual(await messages(volumes, podOf(own)), []);
    assert.deepEqual(world.asked, ['ns/pod-v', 'ns/pod-v']);
    assert.equal(mountOf(volumes, podOf(own))?.hostPath, place);
  });
});
