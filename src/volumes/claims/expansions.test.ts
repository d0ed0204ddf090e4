import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CsiWorld, disk, silence } from '../../../test/fakes/csi-world.ts';
import { podWith, worldUid } from '../../../test/fakes/payload-world.ts';
import type { PersistentVolumeClaim } from '../../kinds/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { CsiVolumes } from '../csi/csi-volumes.ts';
import { planExpansion } from './expansions.ts';

const { signal } = new AbortController();
const pod = podWith([]);
const claimed = { ...disk, claim: 'c' };
const done = `FileSystemResizeSuccessful MountVolume.NodeExpandVolume succeeded for volume "pv" n1`;

const claimOf = (capacity: string, more: object = {}, annotations = {}): PersistentVolumeClaim => ({
  metadata: { name: 'c', annotations },
  spec: { volumeName: 'pv' },
  status: { capacity: { storage: capacity }, ...more },
});
const volumeOf = (storage: string, accessModes: string[] = ['ReadWriteOnce']) => ({
  metadata: { name: 'pv' },
  spec: { capacity: { storage }, accessModes },
});
const pending = { allocatedResourceStatuses: { storage: 'NodeResizePending' } };
const refusedWith = (grpcCode: string) =>
  new KubelingError('CSI_REFUSED', `rpc error: code = X desc = ${grpcCode}`, { details: { grpcCode } });

/** Creates an environment with a claim whose volume the controller has enlarged. */
function grown(more: object = pending): CsiWorld {
  const environment = new CsiWorld();
  environment.can.add('EXPAND_VOLUME');
  environment.claim = claimOf('1Gi', more);
  environment.volume = volumeOf('2Gi');
  return environment;
}

async function keptUp(environment: CsiWorld, volumes: CsiVolumes, ms = 0): Promise<void> {
  volumes.maintain(pod, claimed);
  await environment.runs(volumes, ms);
}

describe('node expansion of a volume', () => {
  it("expands a volume at mount and updates the claim's status at each step", async () => {
    const environment = grown({
      ...pending,
      conditions: [
        { type: 'FileSystemResizePending', status: 'True' },
        { type: 'Other', status: 'True' },
      ],
    });
    const volumes = environment.volumes();
    await volumes.setUp(pod, claimed, signal);
    assert.deepEqual(environment.calls(), ['stage', 'publish', 'claim', 'expand', 'claim']);
    assert.deepEqual(
      environment.history.filter((call) => call.startsWith('claim')),
      [
        'claim {"allocatedResourceStatuses":{"storage":"NodeResizeInProgress"}}',
        'claim {"capacity":{"storage":"2Gi"},"allocatedResourceStatuses":{"storage":null},"conditions":[{"type":"Other","status":"True"}]}',
      ],
    );
    const [request] = environment.expansions;
    assert.equal(request?.volumePath, volumes.mountPathOf(worldUid, 'pv'));
    assert.match(request?.stagingTargetPath ?? '', /globalmount$/);
    assert.deepEqual(request?.capacityRange, { requiredBytes: 2n ** 31n, limitBytes: 0n });
    assert.deepEqual(environment.events, [`pod ${done}`, `c ${done}`]);
    assert.deepEqual(environment.observed, ['volume_fs_resize kubernetes.io/csi:d.example success']);
    await keptUp(environment, volumes);
    assert.equal(environment.expansions.length, 1);
  });

  it('expands a volume of a running pod and retries until that succeeds', async () => {
    const environment = grown();
    environment.volume = volumeOf('1Gi');
    const volumes = environment.volumes();
    await volumes.setUp(pod, claimed, signal);
    environment.volume = volumeOf('2Gi');
    environment.troubles.set('expand', silence());
    const end = new AbortController();
    const running = volumes.run(end.signal).catch(() => {});
    volumes.maintain(pod, claimed);
    await environment.clock.advance(600);
    const failed =
      'pod VolumeResizeFailed NodeExpandVolume.NodeExpandVolume failed for volume "pv" : rpc error: code = Unavailable desc = gone';
    assert.deepEqual(environment.events, [failed, failed]);
    environment.troubles.clear();
    await environment.clock.advance(2_000);
    assert.deepEqual(environment.events.slice(2), [`pod ${done}`, `c ${done}`]);
    end.abort(new Error('over'));
    await running;
    assert.deepEqual(environment.claim?.status?.capacity, { storage: '2Gi' });
  });

  it("fails the mount when the outcome of the driver's expand call is unknown", async () => {
    const environment = grown();
    environment.troubles.set('expand', silence());
    const volumes = environment.volumes();
    const stage = /MountVolume\.Setup failed while expanding volume for volume "pv" : .* Unavailable/;
    await assert.rejects(volumes.setUp(pod, claimed, signal), stage);
    environment.troubles.clear();
    await environment.clock.advance(1_000);
    await volumes.setUp(pod, claimed, signal);
    assert.equal(environment.expansions.length, 1);
  });

  it("reports an infeasible size in the claim's status and mounts the volume with its current size", async () => {
    const environment = grown();
    environment.troubles.set('expand', refusedWith('OUT_OF_RANGE'));
    await environment.volumes().setUp(pod, claimed, signal);
    assert.equal(environment.claim?.status?.allocatedResourceStatuses?.['storage'], 'NodeResizeInfeasible');
    assert.equal(environment.claim?.status?.conditions?.[0]?.type, 'NodeResizeError');
    assert.match(environment.events.join(), /^pod VolumeResizeFailed .* OUT_OF_RANGE$/);
  });

  it('does not retry an infeasible expansion of a volume in use until the volume is released', async () => {
    const environment = grown();
    environment.troubles.set('expand', refusedWith('FAILED_PRECONDITION'));
    const volumes = environment.volumes();
    await volumes.setUp(pod, claimed, signal);
    await keptUp(environment, volumes, 300_000);
    assert.equal(environment.calls().filter((call) => call === 'expand').length, 1);
    await environment.ends(volumes, worldUid);
    environment.troubles.clear();
    await volumes.setUp(pod, claimed, signal);
    assert.equal(environment.expansions.length, 1);
  });

  it('does not expand a volume mounted read-only and reports that', async () => {
    const environment = grown();
    await environment.volumes().setUp(pod, { ...claimed, readOnly: true }, signal);
    const reported =
      'FileSystemResizeFailed MountVolume.NodeExpandVolume failed for volume "pv" requested read-only file system';
    assert.deepEqual(
      [environment.events, environment.expansions],
      [[`pod ${reported}`, `c ${reported}`], []],
    );
  });

  it('mounts a volume with its current size when the driver cannot expand it or the API server is unreachable', async () => {
    const environment = grown();
    environment.can.delete('EXPAND_VOLUME');
    await environment.volumes().setUp(pod, claimed, signal);
    const other = grown();
    const volumes = other.volumes();
    Object.defineProperty(other, 'claim', {
      get: () => {
        throw new KubelingError('API_UNAVAILABLE', 'away');
      },
    });
    await volumes.setUp(pod, claimed, signal);
    assert.deepEqual([environment.expansions, other.expansions], [[], []]);
  });

  it('updates only the capacity on clusters without the resize status, and nothing when another node has already updated the claim', () => {
    const plan = (
      claim: PersistentVolumeClaim,
      modes: string[] = ['ReadWriteOnce'],
      here: bigint | undefined = undefined,
    ) => {
      const found = planExpansion(claim, volumeOf('2Gi', modes), 'writable', here);
      return found.do === 'expand' ? found.reported : found.do;
    };
    assert.equal(plan(claimOf('1Gi')), 'size');
    assert.equal(plan(claimOf('1Gi', pending)), 'steps');
    assert.equal(plan(claimOf('1Gi', { allocatedResources: { storage: '2Gi' } })), 'nothing');
    const infeasible = { allocatedResourceStatuses: { storage: 'NodeResizeInfeasible' } };
    assert.equal(plan(claimOf('1Gi', infeasible)), 'nothing');
    const [shared, before] = [['ReadWriteMany'], 2n ** 30n];
    assert.equal(plan(claimOf('2Gi'), shared, before), 'nothing');
    assert.deepEqual(planExpansion(claimOf('2Gi'), volumeOf('2Gi', shared), 'writable', before), {
      do: 'expand',
      size: '2Gi',
      bytes: 2n ** 31n,
      reported: 'nothing',
    });
    const marked = claimOf('2Gi', {}, { 'volume.kubernetes.io/node-expansion-not-required': 'true' });
    assert.equal(planExpansion(marked, volumeOf('2Gi', shared), 'writable', before).do, 'nothing');
    assert.equal(planExpansion(claimOf('2Gi'), volumeOf('2Gi'), 'writable', before).do, 'nothing');
  });

  it('expands a block volume before the pod gets it and also while the pod runs', async () => {
    const environment = grown();
    const volumes = environment.volumes();
    const device = { ...claimed, shownAs: 'device' as const };
    const shown: string[] = [];
    await volumes.devices.setUp(pod, device, async (path) => void shown.push(path), signal);
    const at = `/root/plugins/kubernetes.io/csi/volumeDevices/publish/pv/${worldUid}`;
    assert.deepEqual([shown, environment.calls()], [[at], ['stage', 'publish', 'claim', 'expand', 'claim']]);
    const [request] = environment.expansions;
    assert.equal(request?.volumePath, at);
    assert.match(request?.stagingTargetPath ?? '', /csi\/volumeDevices\/staging\/pv$/);
    assert.deepEqual(request?.volumeCapability?.block, {});
    environment.volume = volumeOf('3Gi');
    environment.claim = claimOf('2Gi', pending);
    volumes.maintain(pod, device);
    await environment.runs(volumes);
    assert.deepEqual(environment.expansions[1]?.capacityRange?.requiredBytes, 3n * 2n ** 30n);
    assert.deepEqual(environment.claim?.status?.capacity, { storage: '3Gi' });
  });

  it('does not map a block volume for the pod when its expansion fails', async () => {
    const environment = grown();
    environment.troubles.set('expand', silence());
    const device = { ...claimed, shownAs: 'device' as const };
    await assert.rejects(
      environment.volumes().devices.setUp(pod, device, async () => {}, signal),
      {
        message:
          /^MapVolume\.MarkVolumeAsMounted failed while expanding volume for volume "pv" : .* Unavailable/,
      },
    );
  });
});
