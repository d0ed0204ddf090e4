import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podWith, worldUid } from '../../../test/fakes/payload-world.ts';
import { KubelingError, seededRandom, VirtualClock } from '../../lib/index.ts';
import { podUid } from '../../pods/index.ts';
import { failedAt } from '../failed-at.ts';
import { MemoryVolumeFiles } from '../memory-volume-files.ts';
import { CsiAttempts } from './csi-attempts.ts';
import { CsiBlock } from './csi-block.ts';
import type { CsiDriver } from './csi-drivers.ts';
import type { CsiVolume } from './csi-request.ts';

const { signal } = new AbortController();
const base = '/root/plugins/kubernetes.io/csi/volumeDevices';
const pod = podWith([]);
const other = { ...pod, metadata: { ...pod.metadata, uid: podUid('other') } };
const volume: CsiVolume = {
  name: 'pv',
  driver: 'd',
  handle: 'h',
  mode: 'Persistent',
  fsType: '',
  readOnly: true,
  attributes: { of: 'volume' },
  mountOptions: [],
  accessMode: 'ReadWriteOnce',
};

/** A driver that notes what it is asked, and fails where the test says. */
function world() {
  const files = new MemoryVolumeFiles();
  const log: string[] = [];
  const released: string[] = [];
  const state = { failing: '', isAway: false, attaching: undefined as Error | undefined };
  const call = async (name: string, target: string) => {
    log.push(`${name} ${target}`);
    if (state.failing === name) throw new KubelingError('CSI_REFUSED', `${name} refused`);
  };
  const client = {
    stage: (request: Parameters<CsiDriver['client']['stage']>[0]) => {
      assert.deepEqual([request.volumeCapability?.block, request.volumeCapability?.mount], [{}, undefined]);
      return call('stage', request.stagingTargetPath);
    },
    publish: async (request: Parameters<CsiDriver['client']['publish']>[0]) => {
      assert.deepEqual([request.readonly, request.volumeContext], [true, { of: 'volume' }]);
      assert.equal(request.stagingTargetPath, `${base}/staging/pv`);
      await call('publish', request.targetPath);
      await files.writeFile(request.targetPath, Buffer.alloc(0), { mode: 0o640 });
    },
    unpublish: (_handle: string, target: string) => call('unpublish', target),
    unstage: (_handle: string, target: string) => call('unstage', target),
  };
  const clock = new VirtualClock();
  const full: string[] = [];
  const limitReached = (driver: string) => void full.push(driver);
  const attempts = new CsiAttempts({ clock, random: seededRandom(1), limitReached });
  const make = () =>
    new CsiBlock({
      places: { devices: base },
      nodeName: 'node',
      drivers: {
        get: () => {
          if (state.isAway) throw new Error('driver name d not found in the list of registered CSI drivers');
          return { client, can: new Set(['STAGE_UNSTAGE_VOLUME']) } as unknown as CsiDriver;
        },
      },
      api: undefined,
      files,
      attempts,
      attach: async () => {
        if (state.attaching !== undefined) throw state.attaching;
        return {};
      },
      release: ({ handle }) => void released.push(handle),
    });
  return { files, log, released, state, clock, full, attempts, make, block: make() };
}

const [ofPod, ofOther] = [worldUid, 'other'].map((uid) => `${base}/publish/pv/${uid}`);

describe('a device that a driver makes', () => {
  it('is staged once, published to each pod, and undone with the last of them, by a later process too', async () => {
    const { files, log, released, make, block } = world();
    assert.equal(await block.setUp(pod, volume, signal), ofPod);
    await block.setUp(other, volume, signal);
    await block.setUp(pod, volume, signal);
    assert.deepEqual(log, [`stage ${base}/staging/pv`, `publish ${ofPod}`, `publish ${ofOther}`]);
    const later = make();
    assert.deepEqual(await later.known(), [{ driver: 'd', handle: 'h' }]);
    log.length = 0;
    await later.remove(worldUid, signal);
    assert.deepEqual([log, released], [[`unpublish ${ofPod}`], []]);
    await later.remove(podUid('other'), signal);
    assert.deepEqual(log.slice(1), [`unpublish ${ofOther}`, `unstage ${base}/staging/pv`]);
    assert.deepEqual([released, await later.known()], [['h'], []]);
    assert.equal(await files.kindAt(`${base}/pv`), undefined);
    await later.remove(worldUid, signal);
  });

  it('whose kubelet was killed before it was published is unstaged', async () => {
    const { log, released, state, make, block } = world();
    state.failing = 'publish';
    await assert.rejects(block.setUp(pod, volume, signal), {
      message: 'MapVolume.MapPodDevice failed for volume "pv" : publish refused',
    });
    log.length = 0;
    await make().remove(worldUid, signal);
    assert.deepEqual([log, released], [[`unstage ${base}/staging/pv`], ['h']]);
  });

  it('stays noted while its driver is away, and while a pod is shown it', async () => {
    const { files, log, state, block } = world();
    await block.setUp(pod, volume, signal);
    state.isAway = true;
    await assert.rejects(block.remove(worldUid, signal), {
      code: 'VOLUME_REMOVE',
      message:
        'the volume h of the CSI driver d cannot be unpublished: kubernetes.io/csi: blockMapper failed to get CSI client: driver name d not found in the list of registered CSI drivers',
    });
    state.isAway = false;
    await files.writeFile(`${base}/pv/dev/other`, Buffer.alloc(0), { mode: 0o640 });
    await block.remove(worldUid, signal);
    assert.equal(log.at(-1), `unpublish ${ofPod}`);
    await files.unlink(`${base}/pv/dev/other`);
    await block.remove(worldUid, signal);
    assert.equal(log.at(-1), `unstage ${base}/staging/pv`);
  });

  it('that is not attached says so, and when to look again', async () => {
    const { state, block } = world();
    state.attaching = failedAt('MountVolume.WaitForAttach failed', 'pv', 'not yet', 17);
    await assert.rejects(block.setUp(pod, volume, signal), ({ message, details }: KubelingError) => {
      assert.equal(message, 'MapVolume.WaitForAttach failed for volume "pv" : not yet');
      return details['stage'] === 'MapVolume.WaitForAttach failed' && details['retryAtMs'] === 17;
    });
  });

  it('whose driver is away is tried again as soon as that comes', async () => {
    const { state, attempts, block } = world();
    state.isAway = true;
    await assert.rejects(block.setUp(pod, volume, signal), /^KubelingError: MapVolume.SetUpDevice failed /);
    state.isAway = false;
    assert.deepEqual([...attempts.arrived('d')], [worldUid]);
    assert.equal(await block.setUp(pod, volume, signal), ofPod);
  });

  it('that failed is not tried again too soon', async () => {
    const { log, state, clock, block } = world();
    state.failing = 'stage';
    for (const _time of ['once', 'again'])
      await assert.rejects(block.setUp(pod, volume, signal), ({ message, details }: KubelingError) => {
        assert.equal(message, 'MapVolume.SetUpDevice failed for volume "pv" : stage refused');
        return details['retryAtMs'] === clock.monotonicMs() + 500;
      });
    assert.equal(log.length, 1);
    state.failing = '';
    await clock.advance(500);
    assert.equal(await block.setUp(pod, volume, signal), ofPod);
  });

  it('that a pod waits for in vain is in use no longer than the last such pod is there', async () => {
    const { log, released, state, block, make } = world();
    state.attaching = failedAt('MountVolume.WaitForAttach failed', 'pv', 'not yet', 17);
    for (const waiting of [pod, other])
      await assert.rejects(block.setUp(waiting, volume, signal), /WaitForAttach failed/);
    assert.deepEqual(await make().known(), [{ driver: 'd', handle: 'h' }]);
    state.isAway = true;
    await block.remove(worldUid, signal);
    assert.deepEqual(released, []);
    await block.remove(podUid('other'), signal);
    assert.deepEqual([log, released, await block.known()], [[], ['h'], []]);
  });

  it('for which the node stays without room is given up', async () => {
    const { state, clock, full, block } = world();
    const stage = 'MountVolume.WaitForAttach failed';
    state.attaching = new KubelingError('VOLUME_ATTACH_LIMIT', 'no room', {
      details: { stage, retryAtMs: 1 },
    });
    await assert.rejects(block.setUp(pod, volume, signal), { code: 'VOLUME_UNUSABLE', message: 'no room' });
    assert.deepEqual(full, []);
    await clock.advance(123_000);
    await assert.rejects(block.setUp(pod, volume, signal), { code: 'VOLUME_ATTACH_LIMIT' });
    assert.deepEqual(full, ['d']);
  });

  it('cannot be called as the places beside it are', async () => {
    const { block } = world();
    for (const name of ['staging', 'publish', '../x'])
      await assert.rejects(block.setUp(pod, { ...volume, name }, signal), { code: 'VOLUME_UNUSABLE' });
  });
});
