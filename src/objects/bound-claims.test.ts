import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ScriptedApi, serverAway } from '../../test/fakes/scripted-api.ts';
import { settle, VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { apiError } from '../api/index.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../kinds/index.ts';
import { podUid } from '../pods/index.ts';
import { BoundClaims } from './bound-claims.ts';
import { objectNameKey } from './referred-store.ts';

const { signal } = new AbortController();
const [pod, other] = [podUid('pod-1'), podUid('pod-2')];
const data = { namespace: 'ns', name: 'data' };

type ClaimParts = Pick<PersistentVolumeClaim, 'metadata' | 'spec' | 'status'>;

function rig() {
  const clock = new VirtualClock();
  const api = new ScriptedApi();
  const told: string[] = [];
  const claims = new BoundClaims({ api, clock, onChange: (claim) => void told.push(objectNameKey(claim)) });
  const end = new AbortController();
  const ended = claims.run(end.signal).catch(() => 'ended');
  const stop = async () => {
    end.abort(new Error('over'));
    assert.equal(await ended, 'ended');
    assert.equal(clock.pendingTimers, 0);
  };
  const claim = ({ metadata, spec, status }: ClaimParts = {}, name = 'data') =>
    api.put<PersistentVolumeClaim>('persistentvolumeclaims', {
      metadata: { name, namespace: 'ns', uid: `uid-${name}`, ...metadata },
      spec: { volumeName: 'disk', ...spec },
      status: { phase: 'Bound', ...status },
    });
  const volume = (spec: PersistentVolume['spec'] = {}) =>
    api.put<PersistentVolume>('persistentvolumes', {
      metadata: { name: 'disk' },
      spec: { claimRef: { uid: 'uid-data' }, hostPath: { path: '/disk' }, ...spec },
    });
  const get = () => claims.get(data, pod, signal);
  return { clock, api, told, claims, claim, volume, get, stop };
}

describe('BoundClaims.read', () => {
  it('returns a claim with its bound volume', async () => {
    const { claim, volume, get, claims, stop } = rig();
    claim();
    volume();
    const found = await get();
    assert.equal(found.claim.metadata?.name, 'data');
    assert.deepEqual(found.volume.spec?.hostPath, { path: '/disk' });
    assert.equal(claims.size, 0);
    await stop();
  });

  type Rig = ReturnType<typeof rig>;
  const refused: readonly (readonly [string, (rig: Rig) => void, string])[] = [
    [
      'that does not exist',
      () => {},
      'failed to fetch PVC from API server: persistentvolumeclaims "data" not found',
    ],
    [
      'that is being deleted',
      ({ claim }) => claim({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }),
      'PVC is being deleted',
    ],
    ['without a volume', ({ claim }) => claim({ status: { phase: 'Pending' } }), 'PVC is not bound'],
    ['that lost its volume', ({ claim }) => claim({ status: { phase: 'Lost' } }), 'PVC is not bound'],
    [
      'without a volume name',
      ({ claim }) => claim({ spec: { volumeName: '' } }),
      'PVC has empty pvc.Spec.VolumeName',
    ],
    [
      'whose volume does not exist',
      ({ claim }) => claim(),
      'failed to fetch PV disk from API server: persistentvolumes "disk" not found',
    ],
    [
      'whose volume has no claimRef',
      ({ claim, volume }) => {
        claim();
        volume({ claimRef: undefined });
      },
      'found PV object disk but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim',
    ],
    [
      'whose volume is bound to another claim',
      ({ claim, volume }) => {
        claim();
        volume({ claimRef: { uid: 'uid-other' } });
      },
      'found PV object disk but its pv.Spec.ClaimRef.UID uid-other does not point to claim.UID uid-data',
    ],
    [
      'that this node may not read',
      ({ api }) => {
        api.failure = apiError({ what: 'get it', status: 403, apiStatus: { message: 'no relationship' } });
      },
      'failed to fetch PVC from API server: Cannot get it: no relationship',
    ],
  ];
  for (const [what, make, message] of refused)
    it(`rejects a claim ${what} with the message of the Go kubelet`, async () => {
      const world = rig();
      make(world);
      await assert.rejects(world.get(), { code: 'CLAIM_UNBOUND', message });
      await world.stop();
    });

  it('accepts a claim that is being deleted but still protected by its finalizer, because the pod may already run', async () => {
    const { claim, volume, get, stop } = rig();
    claim({
      metadata: {
        deletionTimestamp: '2026-01-01T00:00:00Z',
        finalizers: ['kubernetes.io/pvc-protection'],
      },
    });
    volume();
    await get();
    await stop();
  });

  it('throws CLAIM_UNREAD instead of CLAIM_UNBOUND when the API server cannot be reached', async () => {
    const { api, get, stop } = rig();
    api.failure = serverAway();
    await assert.rejects(get(), {
      code: 'CLAIM_UNREAD',
      message: /^failed to fetch PVC from API server: /,
    });
    await stop();
  });

  it('shares one request between concurrent readers of a claim', async () => {
    const { api, claim, volume, claims, get, stop } = rig();
    claim();
    volume();
    await Promise.all([get(), get(), claims.get(data, other, signal)]);
    assert.deepEqual(api.asked, [
      'get persistentvolumeclaims ns/data',
      'get persistentvolumes undefined/disk',
    ]);
    await stop();
  });
});

describe('polling of claims', () => {
  it('polls every second a claim that a pod waits for, and reports a change', async () => {
    const { clock, api, told, claims, claim, volume, get, stop } = rig();
    await assert.rejects(get());
    await clock.advance(10_000);
    assert.deepEqual([told, claims.size], [[], 1]);
    assert.ok(api.asked.length <= 11, `${api.asked.length} requests in ten seconds`);
    claim({ status: { phase: 'Pending' } });
    await clock.advance(1_000);
    assert.deepEqual(told, ['ns/data']);
    await assert.rejects(get(), { message: 'PVC is not bound' });
    claim();
    volume();
    await clock.advance(1_000);
    assert.deepEqual(told, ['ns/data', 'ns/data']);
    await get();
    assert.equal(claims.size, 0);
    const asked = api.asked.length;
    await clock.advance(60_000);
    assert.equal(api.asked.length, asked, 'no pod waits any more');
    await stop();
  });

  it('reports that a polled claim was bound, even if no pod reads the claim again', async () => {
    const { clock, told, claim, volume, get, stop } = rig();
    await assert.rejects(get());
    claim();
    volume();
    await clock.advance(30_000);
    assert.deepEqual(told, ['ns/data']);
    await stop();
  });

  it('stops polling a claim when its last pod is removed', async () => {
    const { clock, api, claims, get, stop } = rig();
    await assert.rejects(get());
    await assert.rejects(claims.get(data, other, signal));
    claims.forgetPod(pod);
    assert.equal(claims.size, 1);
    claims.forgetPod(other);
    assert.equal(claims.size, 0);
    const asked = api.asked.length;
    await clock.advance(60_000);
    assert.equal(api.asked.length, asked);
    await stop();
  });

  it('respects the request rate limit, and polls every claim eventually', async () => {
    const { clock, api, told, claims, claim, stop } = rig();
    const names = Array.from({ length: 100 }, (_, index) => `claim-${index}`);
    for (const name of names)
      await assert.rejects(claims.get({ namespace: 'ns', name }, podUid(name), signal));
    const asked = api.asked.length;
    await clock.advance(9_999);
    assert.ok(api.asked.length - asked <= 100, `${api.asked.length - asked} requests`);
    for (const name of names) claim({ status: { phase: 'Pending' } }, name);
    await clock.advance(10_000);
    assert.deepEqual(told.toSorted(), names.map((name) => `ns/${name}`).toSorted());
    await stop();
  });

  it('polls other claims while the API server does not respond for one', async () => {
    const { clock, api, told, claims, claim, get, stop } = rig();
    await assert.rejects(get());
    await assert.rejects(claims.get({ namespace: 'ns', name: 'late' }, other, signal));
    const asIs = api.get.bind(api);
    // Like an API call, this promise stays pending until its signal is aborted and then rejects.
    api.get = (ref, _options?: unknown, inner?: AbortSignal) =>
      ref.name === 'late'
        ? new Promise((_resolve, reject) => inner?.addEventListener('abort', () => reject(inner.reason)))
        : asIs(ref);
    await clock.advance(3_000);
    claim({ status: { phase: 'Pending' } });
    await clock.advance(1_000);
    assert.deepEqual(told, ['ns/data']);
    await stop();
  });

  it('polls claims again after the poll loop was restarted', async () => {
    const { clock, told, claims, claim, volume, get, stop } = rig();
    await assert.rejects(get());
    await stop();
    const again = new AbortController();
    const ended = claims.run(again.signal).catch(() => 'ended');
    claim();
    volume();
    await clock.advance(2_000);
    assert.deepEqual(told, ['ns/data']);
    again.abort(new Error('over'));
    await settle();
    assert.equal(await ended, 'ended');
  });
});
