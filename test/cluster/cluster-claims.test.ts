import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { CreateContainerRequest } from '../../src/cri/gen/runtime.ts';
import { realClock, systemRandom } from '../../src/lib/index.ts';
import { GrpcChannel } from '../../src/protocols/grpc/index.ts';
import { PodResourcesLister } from '../../src/resources/pod-resources/gen/pod-resources.ts';
import { EventProxy } from '../chaos/event-proxy.ts';
import { driverProcess, type PluginProcess } from '../devices/plugin-process.ts';
import { scratchFolder } from '../fakes/scratch-folder.ts';
import {
  allocated,
  type Claim,
  claim,
  claimPath,
  claimTemplate,
  devicesOn,
  driverName,
  podWithClaim,
  resourceName,
} from './claim-objects.ts';
import { container, pod, podIsGone, podPath, podSpec, removePods } from './cluster-pods.ts';
import { patiently } from './patiently.ts';
import { noCluster } from './programs.ts';
import { SmallCluster } from './small-cluster.ts';

interface Events {
  readonly items: readonly { readonly reason?: string; readonly message?: string }[];
}

const createContainer = '/runtime.v1.RuntimeService/CreateContainer';
const onNode = { nodeName: 'node-a' };
const start = 'Failed to prepare dynamic resources: prepare dynamic resources: ';
/** Once a minute the kubelet reconciles the claims of pods whose end it did not observe. */
const reconciledWithinMs = 180_000;

describe('the kubelet handles resource claims of pods in a real cluster', {
  skip: noCluster(),
  timeout: 900_000,
}, () => {
  const scratch = scratchFolder('klg-claims-');
  /** For each pod name the CDI devices of each CreateContainer request. */
  const cdiDevices = new Map<string, string[][]>();
  let cluster: SmallCluster;
  let proxy: EventProxy | undefined;
  let driver: PluginProcess;

  /**
   * Starts a proxy that records the CDI devices of requests to containerd, because old versions of
   * containerd do not support CDI.
   */
  async function watchedSocket(real: string): Promise<string> {
    const socket = join(scratch.path, 'cri.sock');
    proxy = new EventProxy(real);
    proxy.sent = (call, message) => {
      if (call !== createContainer) return;
      const { config, sandboxConfig } = CreateContainerRequest.decode(message);
      const name = sandboxConfig?.metadata?.name ?? '';
      const asked = (config?.CDIDevices ?? []).map((device) => device.name);
      cdiDevices.set(name, [...(cdiDevices.get(name) ?? []), asked]);
    };
    await proxy.listen(socket);
    return socket;
  }

  before(async () => {
    cluster = await SmallCluster.open({}, { runtimeSocket: watchedSocket });
    const { plane, node } = cluster;
    await plane.apply(...devicesOn(node.name, 'g1', 'g2', 'g3'), claimTemplate('one-gpu', 'any'));
    driver = driverProcess(driverName, join(scratch.path, 'driver'), join(node.rootDir, 'plugins_registry'));
    await driver.start();
  });

  after(async () => {
    await driver?.kill();
    await cluster?.[Symbol.asyncDispose]();
    await proxy?.[Symbol.asyncDispose]();
    scratch[Symbol.dispose]();
  });

  const prepared = (uid: string) => driver.calls('NodePrepareResources').filter((line) => line.includes(uid));
  const unprepared = (uid: string) =>
    driver.calls('NodeUnprepareResources').filter((line) => line.includes(uid));

  /** Returns the UIDs of the claims in the kubelet's checkpoint, each with its pods. */
  function noted(): Readonly<Record<string, readonly string[]>> {
    const { Data } = JSON.parse(readFileSync(join(cluster.node.rootDir, 'dra_manager_state'), 'utf8'));
    const { ClaimInfoStateList: list } = JSON.parse(Data) as {
      ClaimInfoStateList: readonly { ClaimUID: string; PodUIDs: object }[];
    };
    return Object.fromEntries(list.map(({ ClaimUID, PodUIDs }) => [ClaimUID, Object.keys(PodUIDs)]));
  }

  /** Returns the claims of a pod as the PodResources API reports them. */
  async function toldToAgents(podName: string) {
    const target = `unix://${join(cluster.node.rootDir, 'pod-resources/kubelet.sock')}`;
    using channel = new GrpcChannel({ target, clock: realClock(), random: systemRandom() });
    const { signal } = new AbortController();
    const client = channel.client(PodResourcesLister);
    const { podResources } = await client.get({ podNamespace: 'default', podName }, { signal });
    return podResources?.containers.flatMap(({ dynamicResources }) => dynamicResources) ?? [];
  }

  async function uidAt(path: string): Promise<string> {
    const { metadata } = await cluster.objectIs<Claim>(path, 'there', () => true);
    return metadata.uid;
  }

  /**
   * Allocates a device to each request of the claim and reserves the claim for the pods, as the
   * scheduler would.
   */
  async function allocate(
    name: string,
    results: Readonly<Record<string, string>>,
    pods: readonly string[],
    driver = driverName,
  ): Promise<void> {
    const users = await Promise.all(
      pods.map(async (user) => ({ name: user, uid: await uidAt(podPath(user)) })),
    );
    const body = allocated({ driver, pool: cluster.node.name, results, users });
    const contentType = 'application/merge-patch+json';
    const sent = { method: 'PATCH', body, contentType };
    const response = await cluster.plane.send(`${claimPath(name)}/status`, sent);
    assert.equal(response.status, 200, response.body);
  }

  /**
   * Creates a claim and a pod that uses it, and waits until the pod is Ready. Returns the UID of
   * the claim.
   */
  async function runWithClaim(name: string): Promise<string> {
    await cluster.plane.apply(
      claim(`${name}-gpu`, 'any'),
      podWithClaim(name, { resourceClaimName: `${name}-gpu` }, onNode),
    );
    await allocate(`${name}-gpu`, { any: 'g1' }, [name]);
    await cluster.ready(name);
    return await uidAt(claimPath(`${name}-gpu`));
  }

  async function told(name: string, text: RegExp): Promise<string> {
    const path = `/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=${name}`;
    let last: Events = { items: [] };
    return await patiently(
      `an event of ${name} to say ${text}`,
      async () => {
        last = (await cluster.plane.get<Events>(path)) ?? last;
        const found = last.items.find(({ message = '' }) => text.test(message));
        if (found !== undefined) assert.equal(found.reason, 'FailedPrepareDynamicResources');
        return found?.message;
      },
      () => `${JSON.stringify(last.items, undefined, 1)}\n${cluster.told()}`,
    );
  }

  it('prepares a claim created from a template before its pod runs, and unprepares it afterwards', async () => {
    const { plane } = cluster;
    await plane.apply(podWithClaim('scheduled', { resourceClaimTemplateName: 'one-gpu' }));
    const { metadata, status } = await cluster.ready('scheduled');
    const name = status?.resourceClaimStatuses?.[0]?.resourceClaimName ?? '';
    const uid = await uidAt(claimPath(name));
    assert.deepEqual(cdiDevices.get('scheduled'), [
      [`${driverName}/claim=${uid}`, `${driverName}/wide=${uid}`],
    ]);
    assert.deepEqual([prepared(uid).length, unprepared(uid).length], [1, 0]);
    assert.match(prepared(uid)[0] ?? '', new RegExp(`"namespace":"default","uid":"${uid}","name":"${name}"`));
    assert.deepEqual(noted(), { [uid]: [metadata?.uid] });
    const [given] = await toldToAgents('scheduled');
    assert.deepEqual([given?.claimName, given?.claimNamespace], [name, 'default']);
    assert.deepEqual(
      given?.claimResources.map(({ driverName: by, deviceName, cdiDevices }) => [by, deviceName, cdiDevices]),
      [
        [driverName, 'all', [{ name: `${driverName}/claim=${uid}` }]],
        [driverName, 'wide', [{ name: `${driverName}/wide=${uid}` }]],
      ],
    );
    await removePods(plane, 'scheduled');
    assert.deepEqual([prepared(uid).length, unprepared(uid).length], [1, 1]);
    assert.deepEqual(noted(), {});
  });

  for (const resource of [resourceName, `deviceclass.resource.kubernetes.io/${driverName}`]) {
    it(`supports the claims that the scheduler creates for pods that request ${resource}`, async () => {
      const { plane } = cluster;
      const asking = container('main', { resources: { limits: { [resource]: '1' } } });
      await plane.apply(pod('asking', podSpec([container('idle'), asking])));
      const { status } = await cluster.ready('asking');
      const name = status?.extendedResourceClaimStatus?.resourceClaimName ?? '';
      const uid = await uidAt(claimPath(name));
      assert.equal(prepared(uid).length, 1);
      const created = cdiDevices.get('asking') ?? [];
      assert.deepEqual(created, [[], [`${driverName}/claim=${uid}`]]);
      await removePods(plane, 'asking');
      assert.equal(unprepared(uid).length, 1);
      cdiDevices.delete('asking');
    });
  }

  it('gives each container the devices of the requests it names, also if pods share the claim', async () => {
    const { plane } = cluster;
    const shared = { resourceClaimName: 'shared' };
    await plane.apply(
      claim('shared', 'wide', 'narrow'),
      podWithClaim('wide', shared, onNode, 'wide'),
      podWithClaim('narrow', shared, onNode, 'narrow'),
    );
    await allocate('shared', { wide: 'g1', narrow: 'g2' }, ['wide', 'narrow']);
    for (const name of ['wide', 'narrow']) await cluster.ready(name);
    const uid = await uidAt(claimPath('shared'));
    const ofAll = `${driverName}/claim=${uid}`;
    assert.deepEqual(cdiDevices.get('wide'), [[ofAll, `${driverName}/wide=${uid}`]]);
    assert.deepEqual(cdiDevices.get('narrow'), [[ofAll]]);
    assert.equal(prepared(uid).length, 1);
    await removePods(plane, 'wide');
    assert.equal(unprepared(uid).length, 0, 'another pod still uses it');
    await removePods(plane, 'narrow');
    assert.deepEqual([prepared(uid).length, unprepared(uid).length], [1, 1]);
  });

  it('after the kubelet was killed, a prepared claim is not prepared again, and each claim is unprepared exactly once', async () => {
    const { plane, node } = cluster;
    const uid = await runWithClaim('survivor');
    const before = await node.containersOf('survivor');
    const book = noted();
    const registrations = driver.calls('registered').length;
    await node.kill('SIGKILL');
    await node.start();
    await node.ready();
    await driver.registeredAgain(registrations);
    const next = await runWithClaim('after');
    assert.deepEqual(
      (await node.containersOf('survivor')).map(({ id }) => id),
      before.map(({ id }) => id),
    );
    assert.deepEqual([prepared(uid).length, unprepared(uid).length], [1, 0]);
    assert.deepEqual(noted(), { ...book, [next]: [await uidAt(podPath('after'))] });
    await removePods(plane, 'survivor', 'after');
    assert.deepEqual([unprepared(uid).length, unprepared(next).length], [1, 1]);
    assert.deepEqual(noted(), {});
  });

  it('prepares claims again whose preparation was interrupted by a kill of the kubelet', async () => {
    const { plane, node } = cluster;
    driver.trouble({ NodePrepareResources: 'hang' });
    await plane.apply(
      claim('slow-gpu', 'any'),
      podWithClaim('slow', { resourceClaimName: 'slow-gpu' }, onNode),
    );
    await allocate('slow-gpu', { any: 'g1' }, ['slow']);
    const uid = await uidAt(claimPath('slow-gpu'));
    await patiently('the driver to be asked', async () => (prepared(uid).length > 0 ? true : undefined));
    assert.deepEqual(noted(), { [uid]: [await uidAt(podPath('slow'))] });
    await node.kill('SIGKILL');
    driver.trouble(undefined);
    await node.start();
    await cluster.ready('slow');
    assert.equal(prepared(uid).length, 2);
    assert.equal(cdiDevices.get('slow')?.length, 1);
    await removePods(plane, 'slow');
    assert.equal(unprepared(uid).length, 1);
  });

  it('unprepares the claims of a pod that was deleted while no kubelet ran', async () => {
    const { plane, node } = cluster;
    const uid = await runWithClaim('lost');
    await node.kill('SIGKILL');
    await plane.send(`${podPath('lost')}?gracePeriodSeconds=0`, { method: 'DELETE' });
    await podIsGone(plane, 'lost');
    await node.start();
    await cluster.noContainersOf('lost');
    await patiently(
      'the claim to be taken back',
      async () => (unprepared(uid).length > 0 ? true : undefined),
      cluster.told,
      reconciledWithinMs,
    );
    assert.equal(unprepared(uid).length, 1);
    assert.deepEqual(noted(), {});
  });

  it('keeps the API object of a pod until the driver has unprepared its claims', async () => {
    const { plane, node } = cluster;
    const uid = await runWithClaim('held');
    driver.trouble({ NodeUnprepareResources: 'still in use' });
    await plane.send(podPath('held'), { method: 'DELETE' });
    await patiently('the driver to be asked', async () => (unprepared(uid).length > 0 ? true : undefined));
    const containers = await node.containersOf('held');
    assert.ok(
      !containers.some(({ state }) => state === 'CONTAINER_RUNNING'),
      'it must have been stopped first',
    );
    assert.ok(await plane.get(podPath('held')), 'the pod must still be there');
    driver.trouble(undefined);
    await podIsGone(plane, 'held');
    assert.deepEqual(noted(), {});
  });

  it('reports missing claims, claims reserved for other pods, and claims of unregistered drivers as events', async () => {
    const { plane } = cluster;
    await plane.apply(
      claim('of-nobody', 'any'),
      claim('unallocated', 'any'),
      podWithClaim('wants-missing', { resourceClaimName: 'missing' }, onNode),
      podWithClaim('wants-of-nobody', { resourceClaimName: 'of-nobody' }, onNode),
      podWithClaim('wants-unallocated', { resourceClaimName: 'unallocated' }, onNode),
    );
    await allocate('of-nobody', { any: 'g2' }, ['wants-of-nobody'], 'nobody.test');
    assert.equal(
      await told('wants-missing', /missing/),
      `${start}fetch ResourceClaim missing: resourceclaims.resource.k8s.io "missing" not found`,
    );
    assert.equal(
      await told('wants-of-nobody', /nobody\.test/),
      `${start}DRA driver nobody.test is not registered`,
    );
    const podUid = await uidAt(podPath('wants-unallocated'));
    const claimUid = await uidAt(claimPath('unallocated'));
    assert.equal(
      await told('wants-unallocated', /unallocated/),
      `${start}pod wants-unallocated (${podUid}) is not allowed to use ResourceClaim unallocated (${claimUid})`,
    );
    // The driver is not needed for claims that were never prepared.
    await driver.kill();
    await removePods(plane, 'wants-missing', 'wants-of-nobody', 'wants-unallocated');
    await driver.start();
  });

  it('waits for a driver that returns errors', async () => {
    const { plane } = cluster;
    driver.trouble({ NodePrepareResources: 'on fire' });
    await plane.apply(
      claim('later-gpu', 'any'),
      podWithClaim('later', { resourceClaimName: 'later-gpu' }, onNode),
    );
    await allocate('later-gpu', { any: 'g1' }, ['later']);
    assert.equal(
      await told('later', /on fire/),
      `${start}NodePrepareResources: rpc error: code = Unknown desc = on fire`,
    );
    driver.trouble(undefined);
    await cluster.ready('later');
    await removePods(plane, 'later');
  });
});
