import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MemoryDisks } from '../../../test/fakes/memory-disks.ts';
import { MemoryVolumeFiles } from '../../../test/fakes/memory-volume-files.ts';
import { podWith, worldUid } from '../../../test/fakes/payload-world.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../kinds/index.ts';
import type { BoundVolume } from '../claims/bound-volume.ts';
import { ClaimVolumes } from '../claims/claim-volumes.ts';
import { Expansions } from '../claims/expansions.ts';
import { unusable } from '../projected/payload.ts';
import { LocalDisks } from './local-disks.ts';
import { LocalVolumes } from './local-volumes.ts';

const { signal } = new AbortController();
const pod = podWith([{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }]);
const gibi = 2 ** 30;
const done = 'FileSystemResizeSuccessful MountVolume.NodeExpandVolume succeeded for volume "disk" n1';

/** Creates an environment with a formatted disk of 1Gi whose claim requests a larger size. */
function createEnvironment(path = '/dev/d', spec: PersistentVolume['spec'] = {}) {
  const files = new MemoryVolumeFiles();
  const disks = new MemoryDisks(files);
  disks.add('/dev/d', { kind: 'file-system', type: 'ext4' });
  disks.resize('/dev/d', 2 * gibi);
  const clock = new VirtualClock();
  const events: string[] = [];
  const observed: string[] = [];
  const retained = new Map<string, Readonly<Record<string, BoundVolume>>>();
  const forgotten: string[] = [];
  const state = {
    claim: {
      metadata: { name: 'data', namespace: 'ns' },
      spec: { volumeName: 'disk' },
      status: {
        capacity: { storage: '1Gi' },
        allocatedResourceStatuses: { storage: 'NodeResizePending' },
      },
    } as PersistentVolumeClaim,
    volume: {
      metadata: { name: 'disk' },
      spec: { ...spec, local: { path }, capacity: { storage: '2Gi' } },
    } as PersistentVolume,
    steps: [] as (string | null | undefined)[],
  };
  const journal = {
    event: (_pod: unknown, { reason, message }: { readonly reason: string; readonly message: string }) =>
      void events.push(`${reason} ${message}`),
  };
  const observe = (operation: string, plugin: { readonly name: string }) =>
    void observed.push(`${operation} ${plugin.name}`);
  const expansions = new Expansions({
    nodeName: 'n1',
    api: {
      claim: async () => state.claim,
      volume: async () => state.volume,
      changeClaim: async (claim, change) => {
        const step = change.allocatedResourceStatuses?.['storage'];
        state.steps.push(step);
        const { allocatedResourceStatuses: _before, ...status } = claim.status ?? {};
        const statuses = step == null ? {} : { allocatedResourceStatuses: { storage: step } };
        const capacity = change.capacity === undefined ? {} : { capacity: { ...change.capacity } };
        state.claim = { ...claim, status: { ...status, ...statuses, ...capacity } };
        return state.claim;
      },
      claimEvent: () => {},
    },
    clock,
    journal,
    observe,
  });
  const mounted = new LocalDisks({ rootDir: '/root', files, disks, clock, observe });
  const volumes = new ClaimVolumes({
    claims: { get: async () => ({ claim: state.claim, volume: state.volume }), forgetPod: () => {} },
    local: new LocalVolumes({ podsDir: '/root/pods', files, clock, disks: mounted }),
    hostFiles: { kindBehind: async () => undefined, makeDirectory: async () => {}, makeFile: async () => {} },
    expansions: {
      atMount: (...args) => expansions.atMount(...args),
      online: (...args) => expansions.online(...args),
      forget: (key) => {
        forgotten.push(key);
        expansions.forget(key);
      },
    },
    matchNode: () => 'this',
    records: {
      of: (uid) => retained.get(uid) ?? {},
      ofOtherPods: (uid) =>
        [...retained].flatMap(([other, noted]) => (other === uid ? [] : Object.values(noted))),
      record: async ({ metadata }, noted) => void retained.set(metadata.uid, noted),
      forget: async (uid) => void retained.delete(uid),
    },
    clock,
    journal,
  });
  return { files, disks, volumes, state, events, observed, forgotten };
}

describe('expansion of a local volume', () => {
  it('grows the file system of a local disk at mount and updates the claim at each step', async () => {
    const { disks, volumes, state, events, observed, forgotten } = createEnvironment();
    assert.deepEqual(await volumes.prepare(pod, signal), []);
    assert.equal(disks.sizesOf('/dev/d').files, 2 * gibi);
    assert.deepEqual(state.steps, ['NodeResizeInProgress', null]);
    assert.deepEqual(state.claim.status, { capacity: { storage: '2Gi' } });
    assert.deepEqual([events, observed], [[done], ['volume_fs_resize kubernetes.io/local-volume']]);
    await volumes.remove(worldUid, signal);
    assert.deepEqual(forgotten, ['kubernetes.io/local-volume/disk']);
  });

  it("grows the file system of a running pod's disk and retries after a failure", async () => {
    const { disks, volumes, state, events } = createEnvironment();
    await volumes.prepare(pod, signal);
    disks.resize('/dev/d', 3 * gibi);
    state.volume = { ...state.volume, spec: { ...state.volume.spec, capacity: { storage: '3Gi' } } };
    const status = { ...state.claim.status, allocatedResourceStatuses: { storage: 'NodeResizePending' } };
    state.claim = { ...state.claim, status };
    const grow = disks.grow.bind(disks);
    disks.grow = () => Promise.reject(unusable('not today'));
    await volumes.refresh(pod, signal);
    assert.equal(
      events.at(-1),
      'VolumeResizeFailed NodeExpandVolume.NodeExpandVolume failed for volume "disk" : not today',
    );
    assert.equal(disks.sizesOf('/dev/d').files, 2 * gibi);
    disks.grow = grow;
    await volumes.refresh(pod, signal);
    assert.equal(disks.sizesOf('/dev/d').files, 3 * gibi);
    assert.equal(state.claim.status?.capacity?.['storage'], '3Gi');
    assert.deepEqual(events.filter((event) => event === done).length, 2);
  });

  it('a failed growth is reported and prevents the start of the pod', async () => {
    const { disks, volumes } = createEnvironment();
    disks.grow = () => Promise.reject(unusable('not today'));
    const [problem] = await volumes.prepare(pod, signal);
    assert.equal(
      problem?.message,
      'MountVolume.Setup failed while expanding volume for volume "disk" : not today',
    );
  });

  it('does not grow a read-only volume', async () => {
    const { disks, volumes, events } = createEnvironment('/dev/d', { mountOptions: ['ro'] });
    assert.deepEqual(await volumes.prepare(pod, signal), []);
    assert.equal(disks.sizesOf('/dev/d').files, 0);
    assert.deepEqual(events, [
      'FileSystemResizeFailed MountVolume.NodeExpandVolume failed for volume "disk" requested read-only file system',
    ]);
  });

  it('updates only the claim when the local volume is a directory', async () => {
    const { files, disks, volumes, state, events } = createEnvironment('/mnt/disk');
    await files.makeDirectory('/mnt/disk', 0o755);
    disks.grow = () => Promise.reject(unusable('nobody asks'));
    assert.deepEqual(await volumes.prepare(pod, signal), []);
    assert.equal(state.claim.status?.capacity?.['storage'], '2Gi');
    assert.deepEqual(events, [done]);
  });
});
