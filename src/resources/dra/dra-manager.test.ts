import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { aPod } from '../../../test/fakes/pods.ts';
import { collectLogs, VirtualClock } from '../../lib/index.ts';
import { type Pod, podUid } from '../../pods/index.ts';
import { decodeClaims, encodeClaims } from './claim-book.ts';
import type { ResourceClaim } from './claims.ts';
import { DraDrivers } from './dra-drivers.ts';
import { DraManager } from './dra-manager.ts';
import type { Claim } from './gen/plugin.ts';

const signal = new AbortController().signal;

function aClaim(name: string, pods: readonly string[], drivers = ['gpu.example.com']): ResourceClaim {
  return {
    metadata: { name, namespace: 'default', uid: `uid-${name}` },
    status: {
      reservedFor: pods.map((uid) => ({ uid })),
      allocation: { devices: { results: drivers.map((driver) => ({ driver })) } },
    },
  };
}

function podWith(uid: string, ...claims: readonly string[]): Pod {
  return aPod({
    metadata: { name: uid, namespace: 'default', uid: podUid(uid) },
    spec: { resourceClaims: claims.map((name) => ({ name: `my-${name}`, resourceClaimName: name })) },
  });
}

/** A node with drivers that do as they are told, and files that outlive the kubelet. */
class Node {
  readonly clock = new VirtualClock();
  readonly logs = collectLogs(this.clock);
  readonly calls: string[] = [];
  readonly claims = new Map<string, ResourceClaim>();
  readonly alive = new Set<string>();
  /** What a driver answers for a claim instead. */
  readonly errors = new Map<string, string>();
  text: string | undefined;
  drivers = this.#drivers();

  async start(): Promise<DraManager> {
    this.drivers = this.#drivers();
    await this.drivers.register({ name: 'gpu.example.com', endpoint: '/s', versions: ['v1.DRAPlugin'] });
    const manager = new DraManager({
      drivers: this.drivers,
      fetchClaim: async (_namespace, name) =>
        this.claims.get(name) ?? Promise.reject(new Error(`no claim ${name}`)),
      file: {
        read: async () => this.text,
        write: async (text) => {
          this.text = text;
        },
      },
      mayRun: (uid) => this.alive.has(uid),
      clock: this.clock,
      logger: this.logs.logger,
    });
    await manager.open();
    return manager;
  }

  #drivers(): DraDrivers {
    const answer = (verb: string, claims: readonly Claim[]) => {
      this.calls.push(`${verb} ${claims.map(({ name }) => name)}`);
      return {
        claims: Object.fromEntries(
          claims.map(({ uid, name }) => {
            const device = { requestNames: ['one'], poolName: 'p', deviceName: `d-${name}`, shareId: '' };
            const devices = [{ ...device, cdiDeviceIds: [`example.com/gpu=${name}`] }];
            return [uid, { devices, error: this.errors.get(`${verb} ${name}`) ?? '' }];
          }),
        ),
      };
    };
    return new DraDrivers({
      clock: this.clock,
      open: () => ({
        client: () => ({
          nodePrepareResources: async ({ claims }) => answer('prepare', claims),
          nodeUnprepareResources: async ({ claims }) => answer('unprepare', claims),
        }),
        close: () => {},
      }),
    });
  }
}

describe('claims of pods', () => {
  it('are prepared before the pod runs, given to its containers, and taken back after it', async () => {
    const node = new Node();
    node.claims.set('gpu', aClaim('gpu', ['a']));
    const manager = await node.start();
    const pod = podWith('a', 'gpu');
    await manager.prepare(pod, signal);
    await manager.prepare(pod, signal);
    assert.deepEqual(node.calls, ['prepare gpu']);
    const given = (request?: string) =>
      manager.cdiDevices(pod, { resources: { claims: [{ name: 'my-gpu', ...(request && { request }) }] } });
    assert.deepEqual(
      [given(), given('one'), given('other')],
      [['example.com/gpu=gpu'], ['example.com/gpu=gpu'], []],
    );
    assert.deepEqual(manager.cdiDevices(pod, {}), []);
    await manager.unprepare('a', signal);
    await manager.unprepare('a', signal);
    assert.deepEqual(node.calls, ['prepare gpu', 'unprepare gpu']);
    assert.equal(manager.size, 0);
    assert.deepEqual(decodeClaims(node.text ?? ''), []);
  });

  it('that several pods use are taken back after the last', async () => {
    const node = new Node();
    node.claims.set('gpu', aClaim('gpu', ['a', 'b']));
    const manager = await node.start();
    await Promise.all(['a', 'b'].map((uid) => manager.prepare(podWith(uid, 'gpu'), signal)));
    await manager.unprepare('a', signal);
    assert.deepEqual(node.calls, ['prepare gpu']);
    await manager.unprepare('b', signal);
    assert.deepEqual(node.calls, ['prepare gpu', 'unprepare gpu']);
  });

  it('are refused where they are not for this pod, not there, or no driver is', async () => {
    const node = new Node();
    node.claims.set('others', aClaim('others', ['b']));
    node.claims.set('strange', aClaim('strange', ['a'], ['nobody.example.com']));
    node.claims.set('made', aClaim('made', ['a']));
    const manager = await node.start();
    const refused = (pod: Pod, message: RegExp) =>
      assert.rejects(manager.prepare(pod, signal), { code: 'DRA_PREPARE', message });
    await refused(podWith('a', 'others'), /is not allowed to use ResourceClaim others/);
    await refused(podWith('a', 'strange'), /DRA driver nobody\.example\.com is not registered/);
    await refused(podWith('a', 'missing'), /no claim missing/);
    const fromTemplate = aPod({
      metadata: { name: 'a', namespace: 'default', uid: podUid('a') },
      spec: { resourceClaims: [{ name: 'my', resourceClaimTemplateName: 't' }] },
      status: { resourceClaimStatuses: [{ name: 'my', resourceClaimName: 'made' }] },
    });
    await refused(fromTemplate, /Pod is not owner/);
    await refused({ ...fromTemplate, status: {} }, /not created yet/);
    assert.deepEqual([node.calls, manager.size], [[], 0]);
  });

  it('of which a driver fails are tried again, and taken back even so', async () => {
    const node = new Node();
    node.claims.set('gpu', aClaim('gpu', ['a']));
    node.errors.set('prepare gpu', 'on fire');
    const manager = await node.start();
    await assert.rejects(manager.prepare(podWith('a', 'gpu'), signal), {
      message: /NodePrepareResources failed for ResourceClaim gpu: on fire/,
    });
    assert.equal(manager.size, 1, 'who was asked may have done something');
    node.errors.set('unprepare gpu', 'busy');
    await assert.rejects(manager.unprepare('a', signal), { code: 'DRA_UNPREPARE', message: /busy/ });
    node.errors.clear();
    await manager.prepare(podWith('a', 'gpu'), signal);
    await manager.unprepare('a', signal);
    assert.equal(manager.size, 0);
  });

  it('outlive the kubelet, and those of pods that are gone are taken back within a minute', async () => {
    const node = new Node();
    for (const name of ['gpu', 'nic']) node.claims.set(name, aClaim(name, ['a', 'b']));
    const first = await node.start();
    await first.prepare(podWith('a', 'gpu'), signal);
    await first.prepare(podWith('b', 'nic'), signal);
    node.alive.add('a');
    const second = await node.start();
    const claims = [{ name: 'my-gpu' }];
    assert.deepEqual(second.cdiDevices(podWith('a', 'gpu'), { resources: { claims } }), [
      'example.com/gpu=gpu',
    ]);
    const stop = new AbortController();
    const running = second.run(stop.signal);
    await node.clock.advance(60_000);
    assert.deepEqual(node.calls.slice(2), ['unprepare nic']);
    stop.abort(new Error('ended'));
    await running;
    assert.equal(node.clock.pendingTimers, 0);
  });

  it('that were noted and cannot be read are forgotten, and said to be', async () => {
    const node = new Node();
    node.text = '{"Data":"{}","Checksum":1}';
    assert.equal((await node.start()).size, 0);
    assert.equal([...node.logs.records].length, 1);
  });
});

describe('what is noted of claims', () => {
  it('is as the Go kubelet writes it', () => {
    const device = {
      poolName: 'p',
      deviceName: 'd',
      shareId: undefined,
      requestNames: ['r'],
      cdiDeviceIds: ['x/y=z'],
    };
    const claim = {
      uid: 'u',
      name: 'n',
      namespace: 'ns',
      pods: new Set(['p1']),
      drivers: new Map([['drv', [device]]]),
    };
    const { Data } = JSON.parse(encodeClaims([claim]));
    assert.equal(
      Data,
      '{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1","ClaimInfoStateList":[{"ClaimUID":"u","ClaimName":"n","Namespace":"ns","PodUIDs":{"p1":{}},"DriverState":{"drv":{"Devices":[{"PoolName":"p","DeviceName":"d","ShareID":null,"RequestNames":["r"],"CDIDeviceIDs":["x/y=z"]}]}}}]}',
    );
    assert.deepEqual(decodeClaims(encodeClaims([claim])), [claim]);
  });

  it('holds whatever comes in whatever order, and nothing is left in the end', async () => {
    const step = fc.record({
      pod: fc.constantFrom('a', 'b', 'c'),
      verb: fc.constantFrom('prepare', 'unprepare', 'restart'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        const node = new Node();
        for (const name of ['gpu', 'nic']) node.claims.set(name, aClaim(name, ['a', 'b', 'c']));
        let manager = await node.start();
        const users = new Set<string>();
        for (const { pod, verb } of steps) {
          if (verb === 'prepare') await manager.prepare(podWith(pod, 'gpu', 'nic'), signal);
          else if (verb === 'unprepare') await manager.unprepare(pod, signal);
          else manager = await node.start();
          if (verb === 'prepare') users.add(pod);
          if (verb === 'unprepare') users.delete(pod);
          assert.equal(manager.size, users.size === 0 ? 0 : 2);
          const last = node.calls.findLast((call) => call.includes('gpu'));
          if (users.size > 0) assert.match(last ?? '', /^prepare/);
          else if (last !== undefined) assert.match(last, /^unprepare/);
        }
      }),
      { numRuns: 50 },
    );
  });
});
