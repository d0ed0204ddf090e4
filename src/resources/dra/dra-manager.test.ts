import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { aPod } from '../../../test/fakes/pods.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs, MetricRegistry } from '../../lib/index.ts';
import { type Pod, podUid } from '../../pods/index.ts';
import type { ResourceClaim } from './claim-info.ts';
import { decodeClaims, encodeClaims } from './claim-info.ts';
import { DraDrivers } from './dra-drivers.ts';
import { DraManager } from './dra-manager.ts';
import type { Claim } from './gen/plugin.ts';
import { draMetrics } from './metrics.ts';

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

/** A node with fake DRA drivers, and with files that survive a restart. */
class Node {
  readonly clock = new VirtualClock();
  readonly logs = collectLogs(this.clock);
  readonly calls: string[] = [];
  readonly claims = new Map<string, ResourceClaim>();
  readonly alive = new Set<string>();
  /**
   * The errors that drivers return, by call such as "prepare gpu"; a call without an entry
   * succeeds.
   */
  readonly errors = new Map<string, string>();
  readonly metrics = new MetricRegistry({ onError: (error) => assert.fail(String(error)) });
  readonly observer = draMetrics(this.metrics, () => this.#manager?.inUse ?? []);
  text: string | undefined;
  /**
   * The durations of the next checkpoint writes in order; all further writes complete immediately.
   */
  writesMs: number[] = [];
  #manager: DraManager | undefined;
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
          const ms = this.writesMs.shift();
          if (ms !== undefined) await this.clock.sleep(ms, signal);
          this.text = text;
        },
      },
      mayRun: (uid) => this.alive.has(uid),
      clock: this.clock,
      logger: this.logs.logger,
      observer: this.observer,
    });
    await manager.restore();
    this.#manager = manager;
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
      observer: this.observer,
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

describe('resource claims of pods', () => {
  it('prepares claims before the pod starts, passes them to its containers, and unprepares them after the pod has terminated', async () => {
    const node = new Node();
    node.claims.set('gpu', aClaim('gpu', ['a']));
    const manager = await node.start();
    const pod = podWith('a', 'gpu');
    await manager.prepare(pod, signal);
    await manager.prepare(pod, signal);
    assert.deepEqual(node.calls, ['prepare gpu']);
    const given = (request?: string) =>
      manager.cdiDevices(pod, {
        name: 'main',
        resources: { claims: [{ name: 'my-gpu', ...(request && { request }) }] },
      });
    assert.deepEqual(
      [given(), given('one'), given('other')],
      [['example.com/gpu=gpu'], ['example.com/gpu=gpu'], []],
    );
    assert.deepEqual(manager.cdiDevices(pod, { name: 'main' }), []);
    const reported = manager
      .allocated()
      .of(pod, { name: 'main', resources: { claims: [{ name: 'my-gpu' }] } });
    assert.deepEqual(
      reported.map(({ name, drivers }) => [
        name,
        drivers.get('gpu.example.com')?.map(({ deviceName }) => deviceName),
      ]),
      [['gpu', ['d-gpu']]],
    );
    assert.deepEqual(manager.allocated().of(pod, { name: 'main' }), []);
    await manager.unprepare('a', signal);
    await manager.unprepare('a', signal);
    assert.deepEqual(node.calls, ['prepare gpu', 'unprepare gpu']);
    assert.equal(manager.size, 0);
    assert.deepEqual(decodeClaims(node.text ?? ''), []);
  });

  it('unprepares a claim shared by several pods after the last of these pods has terminated', async () => {
    const node = new Node();
    node.claims.set('gpu', aClaim('gpu', ['a', 'b']));
    const manager = await node.start();
    await Promise.all(['a', 'b'].map((uid) => manager.prepare(podWith(uid, 'gpu'), signal)));
    await manager.unprepare('a', signal);
    assert.deepEqual(node.calls, ['prepare gpu']);
    await manager.unprepare('b', signal);
    assert.deepEqual(node.calls, ['prepare gpu', 'unprepare gpu']);
  });

  it('prepares the claim for extended resources and passes it to the containers that request them', async () => {
    const node = new Node();
    node.claims.set('of-a', aClaim('of-a', ['a']));
    const manager = await node.start();
    const mapping = (containerName: string, requestName: string) => ({
      containerName,
      resourceName: 'example.com/gpu',
      requestName,
    });
    const pod = aPod({
      metadata: { name: 'a', namespace: 'default', uid: podUid('a') },
      status: {
        extendedResourceClaimStatus: {
          resourceClaimName: 'of-a',
          requestMappings: [mapping('main', 'one'), mapping('other', 'two'), mapping('none', 'one')],
        },
      },
    });
    await manager.prepare(pod, signal);
    assert.deepEqual(node.calls, ['prepare of-a']);
    const given = (name: string, amount: string) =>
      manager.cdiDevices(pod, { name, resources: { requests: { 'example.com/gpu': amount } } });
    assert.deepEqual(given('main', '1'), ['example.com/gpu=of-a']);
    assert.deepEqual([given('other', '1'), given('none', '0'), given('stranger', '1')], [[], [], []]);
    await manager.unprepare('a', signal);
    assert.deepEqual(node.calls, ['prepare of-a', 'unprepare of-a']);
  });

  it('rejects claims that are missing, not reserved for the pod, or without a registered driver', async () => {
    const node = new Node();
    node.claims.set('others', aClaim('others', ['b']));
    node.claims.set('strange', aClaim('strange', ['a'], ['nobody.example.com']));
    node.claims.set('made', aClaim('made', ['a']));
    const manager = await node.start();
    const refused = (pod: Pod, message: RegExp) =>
      assert.rejects(manager.prepare(pod, signal), { code: 'DRA_PREPARE', message });
    await refused(podWith('a', 'others'), /is not allowed to use ResourceClaim others/);
    await refused(podWith('a', 'strange'), /DRA driver nobody\.example\.com is not registered/);
    await refused(
      podWith('a', 'missing'),
      /^prepare dynamic resources: fetch ResourceClaim missing: no claim missing$/,
    );
    node.claims.set('waiting', { ...aClaim('waiting', ['a']), status: { reservedFor: [{ uid: 'a' }] } });
    await refused(
      podWith('a', 'waiting'),
      /^prepare dynamic resources: ResourceClaim waiting: not allocated$/,
    );
    const fromTemplate = aPod({
      metadata: { name: 'a', namespace: 'default', uid: podUid('a') },
      spec: { resourceClaims: [{ name: 'my', resourceClaimTemplateName: 't' }] },
      status: { resourceClaimStatuses: [{ name: 'my', resourceClaimName: 'made' }] },
    });
    await refused(fromTemplate, /Pod is not owner/);
    await refused({ ...fromTemplate, status: {} }, /not created yet/);
    const uses = { name: 'main', resources: { claims: [{ name: 'my' }] } };
    assert.deepEqual(manager.allocated().of({ ...fromTemplate, status: {} }, uses), []);
    assert.deepEqual([node.calls, manager.size], [[], 0]);
  });

  it('retries claims after a driver error, and unprepares claims whose preparation has failed', async () => {
    const node = new Node();
    node.claims.set('gpu', aClaim('gpu', ['a']));
    node.errors.set('prepare gpu', 'on fire');
    const manager = await node.start();
    await assert.rejects(manager.prepare(podWith('a', 'gpu'), signal), {
      message: /NodePrepareResources failed for ResourceClaim gpu: on fire/,
    });
    assert.equal(manager.size, 1, 'a called driver may have prepared devices');
    node.errors.set('unprepare gpu', 'busy');
    await assert.rejects(manager.unprepare('a', signal), { code: 'DRA_UNPREPARE', message: /busy/ });
    node.errors.clear();
    await manager.prepare(podWith('a', 'gpu'), signal);
    await manager.unprepare('a', signal);
    assert.equal(manager.size, 0);
  });

  it('measures claim operations and counts prepared claims by driver', async () => {
    const node = new Node();
    node.claims.set('gpu', aClaim('gpu', ['a']));
    node.errors.set('unprepare gpu', 'busy');
    const manager = await node.start();
    await manager.prepare(podWith('a', 'gpu'), signal);
    await assert.rejects(manager.unprepare('a', signal));
    const shown = async () =>
      (await node.metrics.expose(signal)).split('\n').filter((line) => line.startsWith('dra_'));
    const lines = await shown();
    const service = '/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin';
    for (const line of [
      'dra_resource_claims_in_use{driver_name="<any>"} 1',
      'dra_resource_claims_in_use{driver_name="gpu.example.com"} 1',
      'dra_operations_duration_seconds_count{operation_name="PrepareResources",is_error="false"} 1',
      'dra_operations_duration_seconds_count{operation_name="UnprepareResources",is_error="true"} 1',
      `dra_grpc_operations_duration_seconds_count{driver_name="gpu.example.com",method_name="${service}/NodePrepareResources",grpc_status_code="OK"} 1`,
      `dra_grpc_operations_duration_seconds_count{driver_name="gpu.example.com",method_name="${service}/NodeUnprepareResources",grpc_status_code="OK"} 1`,
    ])
      assert.ok(lines.includes(line), lines.join('\n'));
    node.errors.clear();
    await manager.unprepare('a', signal);
    const left = (await shown()).filter((line) => line.includes('in_use'));
    assert.deepEqual(left, ['dra_resource_claims_in_use{driver_name="<any>"} 0']);
  });

  it('claims survive a restart, and those of orphaned pods are unprepared within a minute', async () => {
    const node = new Node();
    for (const name of ['gpu', 'nic']) node.claims.set(name, aClaim(name, ['a', 'b']));
    const first = await node.start();
    await first.prepare(podWith('a', 'gpu'), signal);
    await first.prepare(podWith('b', 'nic'), signal);
    node.alive.add('a');
    const second = await node.start();
    const claims = [{ name: 'my-gpu' }];
    assert.deepEqual(second.cdiDevices(podWith('a', 'gpu'), { name: 'main', resources: { claims } }), [
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

  it('persists the claims of concurrent pods while checkpoint writes are slow', async () => {
    const node = new Node();
    for (const name of ['a', 'b']) node.claims.set(name, aClaim(name, [name]));
    const manager = await node.start();
    node.writesMs = [500, 10];
    const preparing = Promise.all(['a', 'b'].map((name) => manager.prepare(podWith(name, name), signal)));
    await node.clock.advance(2_000);
    await preparing;
    const noted = decodeClaims(node.text ?? '').map(({ name, drivers }) => [
      name,
      [...drivers.values()][0]?.length,
    ]);
    assert.deepEqual(noted.toSorted(), [
      ['a', 1],
      ['b', 1],
    ]);
    node.writesMs = [500, 10];
    const unpreparing = Promise.all(['a', 'b'].map((name) => manager.unprepare(name, signal)));
    await node.clock.advance(2_000);
    await unpreparing;
    assert.deepEqual(decodeClaims(node.text ?? ''), []);
  });

  it('starts without claims if the checkpoint cannot be read, and logs the failure', async () => {
    const node = new Node();
    node.text = '{"Data":"{}","Checksum":1}';
    assert.equal((await node.start()).size, 0);
    assert.equal([...node.logs.records].length, 1);
  });
});

describe('the claim checkpoint', () => {
  it('the claim checkpoint has the format of the Go kubelet', () => {
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

  it('for any order of operations and restarts, claims are prepared exactly while a pod uses them', async () => {
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
