import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MemoryVolumeFiles } from '../../../test/fakes/memory-volume-files.ts';
import { podWith, worldUid } from '../../../test/fakes/payload-world.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import type { PersistentVolume } from '../../kinds/index.ts';
import { collectLogs, KubelingError, seededRandom } from '../../lib/index.ts';
import { podUid } from '../../pods/index.ts';
import { stageError } from '../manager/mount-attempts.ts';
import type { CsiApi } from './csi-attach.ts';
import { CsiAttempts } from './csi-attempts.ts';
import { CsiBlock } from './csi-block.ts';
import type { BlockData } from './csi-block-removal.ts';
import type { CsiDriver } from './csi-drivers.ts';
import { CsiPaths } from './csi-paths.ts';
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
  shownAs: 'device',
};
const show = async () => {};

/** Creates an environment with a fake driver that records its calls and fails as configured. */
function createEnvironment() {
  const files = new MemoryVolumeFiles();
  const log: string[] = [];
  const released: string[] = [];
  const state = {
    failing: '',
    isAway: false,
    attaching: undefined as Error | undefined,
    noted: new Map<string, BlockData>(),
    volume: undefined as PersistentVolume | undefined,
  };
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
      await files.replaceFile(request.targetPath, Buffer.alloc(0), 0o640);
    },
    unpublish: (_handle: string, target: string) => call('unpublish', target),
    unstage: (_handle: string, target: string) => call('unstage', target),
  };
  const clock = new VirtualClock();
  const logs = collectLogs(clock);
  const full: string[] = [];
  const observed: string[] = [];
  const limitReached = (driver: string) => void full.push(driver);
  const attempts = new CsiAttempts({ clock, random: seededRandom(1), limitReached });
  const make = () =>
    new CsiBlock({
      clock,
      observe: (operation, plugin, { outcome }) =>
        void observed.push(`${operation} ${plugin.name} ${outcome} ${plugin.origin}`),
      paths: new CsiPaths('/root', '/root/pods'),
      nodeName: 'node',
      drivers: {
        get: () => {
          if (state.isAway) throw new Error('driver name d not found in the list of registered CSI drivers');
          return { client, can: new Set(['STAGE_UNSTAGE_VOLUME']) } as unknown as CsiDriver;
        },
      },
      api: {
        volume: async () => state.volume,
        driver: async () => undefined,
      } as unknown as CsiApi,
      files,
      logger: logs.logger,
      recordedVolume: (uid, name) => state.noted.get(`${uid}/${name}`),
      isRecorded: (_driver, handle, besides) =>
        [...state.noted].some(([key, noted]) => noted.handle === handle && key !== `${besides}/pv`),
      expand: async () => void log.push('expand'),
      hide: async (uid) => {
        log.push(`hide ${uid}`);
        await files.unlink(`${base}/pv/dev/${uid}`);
      },
      attempts,
      attach: async () => {
        if (state.attaching !== undefined) throw state.attaching;
        return {};
      },
      release: ({ handle }) => void released.push(handle),
    });
  return { files, log, logs, released, state, clock, full, observed, attempts, make, block: make() };
}

const [ofPod, ofOther] = [worldUid, 'other'].map((uid) => `${base}/publish/pv/${uid}`);

describe('CSI block volumes', () => {
  it('stages a block volume once, publishes it to each pod, and unstages it after the last pod, also after a restart', async () => {
    const { files, log, released, make, block } = createEnvironment();
    const shown: string[] = [];
    await block.setUp(pod, volume, async (path) => void shown.push(path), signal);
    assert.deepEqual(shown, [ofPod]);
    await block.setUp(other, volume, show, signal);
    await block.setUp(pod, volume, show, signal);
    assert.deepEqual(log, [
      `stage ${base}/staging/pv`,
      `publish ${ofPod}`,
      'expand',
      `publish ${ofOther}`,
      'expand',
    ]);
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

  it('unstages a volume when the kubelet was killed before NodePublishVolume', async () => {
    const { log, released, state, make, block } = createEnvironment();
    state.failing = 'publish';
    await assert.rejects(block.setUp(pod, volume, show, signal), {
      message: 'MapVolume.MapPodDevice failed for volume "pv" : publish refused',
    });
    log.length = 0;
    await make().remove(worldUid, signal);
    assert.deepEqual([log, released], [[`unstage ${base}/staging/pv`], ['h']]);
  });

  it('labels the metrics of a migrated in-tree volume as migrated, also after a restart', async () => {
    const { observed, make, block } = createEnvironment();
    await block.setUp(pod, { ...volume, origin: 'in-tree' }, show, signal);
    const later = make();
    assert.deepEqual(await later.known(), [{ driver: 'd', handle: 'h', origin: 'in-tree' }]);
    await later.remove(worldUid, signal);
    assert.deepEqual(observed, ['unmap_device kubernetes.io/csi:d success in-tree']);
  });

  it('keeps the data file while the driver is not registered or a pod has the device mapped', async () => {
    const { files, log, state, block } = createEnvironment();
    await block.setUp(pod, volume, show, signal);
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

  it('rejects the mount with a retry time while the volume is not attached', async () => {
    const { state, block } = createEnvironment();
    state.attaching = stageError('MountVolume.WaitForAttach failed', 'pv', 'not yet', 17);
    await assert.rejects(block.setUp(pod, volume, show, signal), ({ message, details }: KubelingError) => {
      assert.equal(message, 'MapVolume.WaitForAttach failed for volume "pv" : not yet');
      return details['stage'] === 'MapVolume.WaitForAttach failed' && details['retryAtMs'] === 17;
    });
  });

  it('retries a mount immediately when the missing driver registers', async () => {
    const { state, attempts, block } = createEnvironment();
    state.isAway = true;
    await assert.rejects(
      block.setUp(pod, volume, show, signal),
      /^KubelingError: MapVolume.SetUpDevice failed /,
    );
    state.isAway = false;
    assert.deepEqual([...attempts.driverRegistered('d')], [worldUid]);
    await block.setUp(pod, volume, show, signal);
  });

  it('accepts a volume published by a previous process while the driver or the API server is unavailable', async () => {
    const { files, state, block, make } = createEnvironment();
    const shown: string[] = [];
    const noteShown = async (path: string) => void shown.push(path);
    await block.setUp(pod, volume, show, signal);
    state.isAway = true;
    await assert.rejects(make().setUp(pod, volume, noteShown, signal), /SetUpDevice failed/);
    await files.writeFile(`${base}/pv/dev/${worldUid}`, Buffer.alloc(0), { mode: 0o640 });
    await assert.rejects(make().setUp(pod, volume, noteShown, signal), /SetUpDevice failed/);
    files.put(`${base}/pv/dev/${worldUid}`, {
      kind: 'device',
      device: '/dev/d',
      mode: 0o660,
      owner: 0,
      group: 0,
    });
    const later = make();
    await assert.rejects(later.setUp(other, volume, noteShown, signal), /SetUpDevice failed/);
    assert.deepEqual(shown, []);
    await later.setUp(pod, volume, noteShown, signal);
    state.isAway = false;
    const unavailable = new KubelingError('API_UNAVAILABLE', 'away');
    state.attaching = stageError('MountVolume.WaitForAttach failed', 'pv', 'away', undefined, unavailable);
    await make().setUp(pod, volume, noteShown, signal);
    assert.deepEqual(shown, [ofPod, ofPod]);
    state.attaching = undefined;
    state.failing = 'stage';
    await assert.rejects(make().setUp(pod, volume, noteShown, signal), /stage refused/);
  });

  it('does not stage a volume before the previous volume of the same name is removed', async () => {
    const { files, state, clock, block, make } = createEnvironment();
    await block.setUp(pod, volume, show, signal);
    files.put(`${base}/pv/dev/${worldUid}`, {
      kind: 'device',
      device: '/dev/d',
      mode: 0o660,
      owner: 0,
      group: 0,
    });
    state.isAway = true;
    const another = { ...volume, handle: 'another' };
    for (const _time of ['once', 'again']) {
      await assert.rejects(make().setUp(pod, another, show, signal), {
        message:
          'MapVolume.SetUpDevice failed for volume "pv" : pods still have the volume h of the CSI driver d that was called so',
      });
      await clock.advance(10_000);
    }
    assert.deepEqual(await block.known(), [{ driver: 'd', handle: 'h' }]);
  });

  it('does not call the driver during the back-off after a failure', async () => {
    const { log, state, clock, block } = createEnvironment();
    state.failing = 'stage';
    for (const _time of ['once', 'again'])
      await assert.rejects(block.setUp(pod, volume, show, signal), ({ message, details }: KubelingError) => {
        assert.equal(message, 'MapVolume.SetUpDevice failed for volume "pv" : stage refused');
        return details['retryAtMs'] === clock.monotonicMs() + 500;
      });
    assert.equal(log.length, 1);
    state.failing = '';
    await clock.advance(500);
    await block.setUp(pod, volume, show, signal);
  });

  it('a volume that failed to mount is released when the last pod that waits for it is removed', async () => {
    const { log, released, state, block, make } = createEnvironment();
    state.attaching = stageError('MountVolume.WaitForAttach failed', 'pv', 'not yet', 17);
    for (const waiting of [pod, other])
      await assert.rejects(block.setUp(waiting, volume, show, signal), /WaitForAttach failed/);
    assert.deepEqual(await make().known(), [{ driver: 'd', handle: 'h' }]);
    state.isAway = true;
    await block.remove(worldUid, signal);
    assert.deepEqual(released, []);
    await block.remove(podUid('other'), signal);
    assert.deepEqual([log, released, await block.known()], [[], ['h'], []]);
  });

  it('rejects the pod with VOLUME_ATTACH_LIMIT when the attach limit stays reached for two minutes', async () => {
    const { state, clock, full, block } = createEnvironment();
    const stage = 'MountVolume.WaitForAttach failed';
    state.attaching = new KubelingError('VOLUME_ATTACH_LIMIT', 'attach limit reached', {
      details: { stage, retryAtMs: 1 },
    });
    await assert.rejects(block.setUp(pod, volume, show, signal), {
      code: 'VOLUME_UNUSABLE',
      message: 'attach limit reached',
    });
    assert.deepEqual(full, []);
    await clock.advance(123_000);
    await assert.rejects(block.setUp(pod, volume, show, signal), { code: 'VOLUME_ATTACH_LIMIT' });
    assert.deepEqual(full, ['d']);
  });

  it('rejects a volume whose name is a reserved directory', async () => {
    const { block } = createEnvironment();
    for (const name of ['staging', 'publish', '../x'])
      await assert.rejects(block.setUp(pod, { ...volume, name }, show, signal), { code: 'VOLUME_UNUSABLE' });
  });

  it('unmaps, unpublishes and unstages the devices of orphaned pods, and resumes after each crash', async () => {
    const { files, log, state, released, make, block } = createEnvironment();
    await block.setUp(pod, volume, show, signal);
    await files.writeFile(`${base}/pv/dev/${worldUid}`, Buffer.alloc(0), { mode: 0o640 });
    await files.makeDirectory(`/root/pods/${worldUid}`, 0o750);
    log.length = 0;
    await make().sweep(signal);
    assert.deepEqual(log, [], 'the pod directory exists: its removal covers the devices');
    await files.removeEmptyDirectory(`/root/pods/${worldUid}`);
    state.noted.set(`${worldUid}/pv`, { driver: 'd', handle: 'h' });
    await make().sweep(signal);
    assert.deepEqual(log, [], 'the volume is recorded for the pod');
    state.noted.clear();
    await block.sweep(signal);
    assert.deepEqual(log, [], 'the pod uses the volume');
    state.failing = 'unpublish';
    await make().sweep(signal);
    state.failing = 'unstage';
    await make().sweep(signal);
    state.failing = '';
    await make().sweep(signal);
    assert.deepEqual(log, [
      `hide ${worldUid}`,
      `unpublish ${ofPod}`,
      `hide ${worldUid}`,
      `unpublish ${ofPod}`,
      `unstage ${base}/staging/pv`,
      `unstage ${base}/staging/pv`,
    ]);
    assert.deepEqual([released, await files.names(base)], [['h'], ['publish', 'staging']]);
  });

  it('a sweep does not unstage a volume that another pod uses', async () => {
    const { files, log, make, block } = createEnvironment();
    await block.setUp(pod, volume, show, signal);
    await block.setUp(other, volume, show, signal);
    await files.makeDirectory('/root/pods/other', 0o750);
    log.length = 0;
    await make().sweep(signal);
    assert.deepEqual(log, [`hide ${worldUid}`, `unpublish ${ofPod}`]);
  });

  it('reports an unregistered driver of an orphaned device once and removes the device when the driver registers', async () => {
    const { log, logs, state, make, block } = createEnvironment();
    await block.setUp(pod, volume, show, signal);
    state.isAway = true;
    const later = make();
    await later.sweep(signal);
    await later.sweep(signal);
    const reported = logs.records
      .toArray()
      .filter(({ message }) => message.startsWith('Failed to remove orphaned'));
    assert.deepEqual(
      reported.map(({ fields }) => fields?.['because']),
      [
        'the volume h of the CSI driver d cannot be unpublished: kubernetes.io/csi: blockMapper failed to get CSI client: driver name d not found in the list of registered CSI drivers',
      ],
    );
    state.isAway = false;
    log.length = 0;
    await later.sweep(signal);
    assert.deepEqual(log.slice(1), [`unpublish ${ofPod}`, `unstage ${base}/staging/pv`]);
  });

  for (const text of ['{"driverName":"d","volu', '{}', ''])
    it(`removes the volume using recorded data or data of the API server when vol_data.json contains ${JSON.stringify(text)}`, async () => {
      for (const known of ['noted', 'API'] as const) {
        const { files, log, state, make, block } = createEnvironment();
        await block.setUp(pod, volume, show, signal);
        await files.replaceFile(`${base}/pv/data/vol_data.json`, Buffer.from(text), 0o644);
        log.length = 0;
        if (known === 'noted') state.noted.set(`${worldUid}/pv`, { driver: 'd', handle: 'h' });
        else state.volume = { spec: { csi: { driver: 'd', volumeHandle: 'h' } } };
        await make().remove(worldUid, signal);
        assert.deepEqual(log, [`unpublish ${ofPod}`, `unstage ${base}/staging/pv`], known);
      }
    });

  it('keeps a mounted volume whose driver is unknown and reports it once', async () => {
    const { files, log, logs, make, block } = createEnvironment();
    await block.setUp(pod, volume, show, signal);
    await files.unlink(ofPod ?? '');
    await files.replaceFile(`${base}/pv/data/vol_data.json`, Buffer.from('{'), 0o644);
    files.mountForeign(`${base}/staging/pv`);
    log.length = 0;
    const later = make();
    await later.sweep(signal);
    await later.sweep(signal);
    assert.deepEqual(
      logs.records.toArray().map(({ fields }) => fields?.['because']),
      [
        `${base}/staging/pv is still mounted, and nothing says by which driver: its vol_data.json is missing or damaged`,
      ],
    );
    assert.notEqual(await files.kindAt(`${base}/pv/data/vol_data.json`), undefined);
    await files.unmount(`${base}/staging/pv`);
    await later.sweep(signal);
    assert.deepEqual([log, await files.names(base)], [[], ['publish', 'staging']]);
  });

  it('removes the empty directories of a volume without data file', async () => {
    const { files, make } = createEnvironment();
    await files.makeDirectory(`${base}/pv/data`, 0o750);
    await files.writeFile(`${base}/pv/data/.kubeling-0123456789abcdef.tmp`, Buffer.alloc(1), { mode: 0o644 });
    await make().sweep(signal);
    assert.deepEqual(await files.names(base), []);
  });

  it('publishes a volume again when its driver requires republishing', async () => {
    const { log, block } = createEnvironment();
    await block.setUp(pod, volume, show, signal);
    log.length = 0;
    await block.publishAgain(pod, volume, signal);
    assert.deepEqual(log, [`publish ${ofPod}`]);
  });
});
