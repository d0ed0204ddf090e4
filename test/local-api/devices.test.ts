import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Node, Pod } from '../../src/kinds/index.ts';
import { realClock, systemRandom } from '../../src/lib/index.ts';
import { GrpcChannel } from '../../src/protocols/grpc/index.ts';
import { PodResourcesLister } from '../../src/resources/pod-resources/gen/pod-resources.ts';
import { type Offer, PluginProcess } from '../devices/plugin-process.ts';
import { eventually } from '../kubeling-node.ts';
import { LocalCluster } from './local-cluster.ts';
import { withoutKubectl } from './tour-commands.ts';
import { nodeName, podWith } from './volume-objects.ts';

const { signal } = new AbortController();
const resource = 'devices.test/gadget';
const offer = (...ids: readonly string[]): Offer => ({ devices: ids.map((id) => ({ id })) });
const asking = (count: number) => ({ resources: { limits: { [resource]: `${count}` } } });
const pod = (name: string, count: number, script = 'echo started') =>
  podWith(name, script, asking(count), { restartPolicy: 'Always' });

/**
 * A CDI specification: the container edits that a runtime with CDI support applies for each of
 * these devices.
 */
function namesOf(kind: string, ...names: readonly string[]): object {
  const devices = names.map((name) => ({ name, containerEdits: { env: [`NAMED=by-its-name-${name}`] } }));
  return { cdiVersion: '0.6.0', kind, devices };
}

/** The tests use device plugins in separate processes, the real kubectl and the real containerd. */
describe('device plugins on kubeling up', { timeout: 900_000, skip: withoutKubectl() }, () => {
  let cluster: LocalCluster;
  let plugin: PluginProcess;
  let folder: string;
  let directory: string;

  before(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'klg-devices-')));
    cluster = await LocalCluster.open();
    directory = join(cluster.node.dataDir, 'kubelet/device-plugins');
    plugin = new PluginProcess(resource, offer('g1', 'g2', 'g3'), { folder, directory });
    await plugin.start();
  });

  after(async () => {
    await plugin?.kill();
    const left = await cluster?.leave();
    await rm(folder, { recursive: true, force: true });
    assert.deepEqual(left, []);
  });

  const amounts = async (name = resource) => {
    const { status }: Node = JSON.parse(await cluster.kubectl('get', 'node', nodeName, '-o', 'json'));
    return `${status?.allocatable?.[name]} of ${status?.capacity?.[name]}`;
  };
  const nodeHas = (expected: string, name = resource) =>
    cluster.node.until(`the node to have ${expected}`, async () => (await amounts(name)) === expected);
  const inside = (name: string, script: string) => cluster.kubectl('exec', name, '--', 'sh', '-c', script);
  const given = async (name: string) => (await inside(name, 'echo $GADGET_DEVICES')).trim();
  const stop = async (name: string) => {
    const [container] = await cluster.node.containersOf(name);
    await cluster.node.cri.stopContainer({ containerId: container?.id ?? '', timeout: 0n }, signal);
  };
  const podOf = async (name: string): Promise<Pod> =>
    JSON.parse(await cluster.kubectl('get', 'pod', name, '-o', 'json'));
  const remove = (...names: readonly string[]) => cluster.kubectl('delete', 'pod', ...names, '--now');
  const noted = () =>
    JSON.parse(readFileSync(join(directory, 'kubelet_internal_checkpoint'), 'utf8')).Data.PodDeviceEntries;

  it('devices are listed as node resources, and containers get them with all mounts, variables and device nodes', async () => {
    await nodeHas('3 of 3');
    await cluster.apply(pod('one', 2));
    await cluster.ready('one');
    const devices = await given('one');
    assert.match(devices, /^g\d,g\d$/);
    for (const id of devices.split(',')) {
      assert.equal(await inside('one', `cat /devices/${id}`), `I am ${id}\n`);
      assert.equal(
        (await cluster.attempt(['exec', 'one', '--', 'sh', '-c', `echo > /devices/${id}`])).code,
        1,
      );
      assert.equal((await inside('one', `head -c 3 /dev/${id} | wc -c`)).trim(), '3');
    }
    const [container] = await cluster.node.containersOf('one');
    assert.equal(container?.annotations['devices.test/given'], devices);
    assert.deepEqual((await podOf('one')).status?.containerStatuses?.[0]?.allocatedResourcesStatus, [
      {
        name: resource,
        resources: devices.split(',').map((resourceID) => ({ resourceID, health: 'Healthy' })),
      },
    ]);
    assert.deepEqual(
      noted().map((entry: { readonly DeviceIDs: object }) => entry.DeviceIDs),
      [{ '-1': devices.split(',') }],
    );
  });

  it('devices are reported to monitoring agents of the node by the pod resources API', async () => {
    const target = `unix://${join(cluster.node.dataDir, 'kubelet/pod-resources/kubelet.sock')}`;
    using channel = new GrpcChannel({ target, clock: realClock(), random: systemRandom() });
    const agent = channel.client(PodResourcesLister);
    const { podResources } = await agent.list({}, { signal });
    const devices = podResources.find(({ name }) => name === 'one')?.containers[0]?.devices;
    assert.deepEqual(
      devices?.map(({ resourceName, deviceIds }) => `${resourceName} ${deviceIds}`),
      (await given('one')).split(',').map((id) => `${resource} ${id}`),
    );
    const allocatable = await agent.getAllocatableResources({}, { signal });
    assert.deepEqual(
      allocatable.devices.map(({ deviceIds }) => deviceIds[0]),
      ['g1', 'g2', 'g3'],
    );
  });

  it('a device is not assigned twice: a pod without free devices is rejected', async () => {
    await cluster.apply(pod('greedy', 2));
    const rejected = await eventually('the pod to be rejected', async () => {
      const { status } = await podOf('greedy');
      return status?.phase === 'Failed' ? status : undefined;
    });
    assert.equal(rejected.reason, 'UnexpectedAdmissionError');
    assert.equal(
      rejected.message,
      `Pod was rejected: Allocate failed due to requested number of devices unavailable for ${resource}. ` +
        'Requested: 2, Available: 1, which is unexpected',
    );
    await remove('greedy');
  });

  it('devices stay assigned to their containers when kubeling is killed', async () => {
    await cluster.apply(pod('two', 1));
    await cluster.ready('two');
    const before = [await given('one'), await given('two')];
    const containers = await cluster.node.containersOf('one');
    const times = plugin.calls('registered').length;
    await cluster.node.end('SIGKILL');
    await cluster.node.start();
    await plugin.registeredAgain(times);
    await nodeHas('3 of 3');
    await cluster.ready('one');
    assert.deepEqual([await given('one'), await given('two')], before);
    assert.deepEqual(
      (await cluster.node.containersOf('one')).map(({ id }) => id),
      containers.map(({ id }) => id),
    );
    await stop('one');
    await cluster.node.until('the container to be restarted', async () => {
      const [status] = (await podOf('one')).status?.containerStatuses ?? [];
      return status?.restartCount === 1 && status.ready;
    });
    assert.equal(await given('one'), before[0]);
    await cluster.apply(pod('three', 1));
    await cluster.event('the pod to be rejected', 'Requested: 1, Available: 0');
    await remove('three', 'two');
    await cluster.apply(pod('three', 1));
    await cluster.ready('three');
    assert.equal(await given('three'), before[1]);
    await remove('three', 'one');
  });

  it('devices of a killed plugin are not allocatable until it is back, and running pods keep their devices', async () => {
    await cluster.apply(pod('keeps', 1));
    await cluster.ready('keeps');
    const devices = await given('keeps');
    await plugin.kill();
    await nodeHas('0 of 3');
    assert.equal(await given('keeps'), devices);
    await cluster.apply(pod('comes', 1));
    await cluster.event(
      'the pod to be rejected',
      'no healthy devices present; cannot allocate unhealthy devices',
    );
    await plugin.start();
    await nodeHas('3 of 3');
    await remove('comes');
    await cluster.apply(pod('comes', 2));
    await cluster.ready('comes');
    assert.deepEqual([...(await given('comes')).split(','), devices].toSorted(), ['g1', 'g2', 'g3']);
    await remove('comes', 'keeps');
  });

  it('an unhealthy device is not assigned, and a pod that has it reports its health', async () => {
    await cluster.apply(pod('has', 1));
    await cluster.ready('has');
    const devices = await given('has');
    const healthOf = async () => {
      const { status } = await podOf('has');
      return status?.containerStatuses?.[0]?.allocatedResourcesStatus?.[0]?.resources?.[0]?.health;
    };
    const told = (health: string) => ({
      devices: ['g1', 'g2', 'g3'].map((id) => (id === devices ? { id, health } : { id })),
    });
    plugin.tell(told('Unhealthy'));
    await nodeHas('2 of 3');
    await cluster.node.until('the pod to report it', async () => (await healthOf()) === 'Unhealthy');
    assert.equal((await podOf('has')).status?.phase, 'Running');
    plugin.tell(told('Healthy'));
    await nodeHas('3 of 3');
    await cluster.node.until('the pod to report it', async () => (await healthOf()) === 'Healthy');
    await remove('has');
  });

  it('devices of a plugin discovered by its socket are allocatable, and its preferred devices are assigned first', async () => {
    const name = 'devices.test/found';
    const found = new PluginProcess(
      name,
      { ...offer('f1', 'f2'), preStart: true, preferred: ['f2'], cdi: true },
      {
        folder: join(folder, 'found'),
        directory,
        registry: join(cluster.node.dataDir, 'kubelet/plugins_registry'),
      },
    );
    // Only a runtime with CDI support resolves the CDI name of a device.
    const { runtimeVersion } = await cluster.node.cri.version({}, signal);
    const knowsNames = Number.parseInt(runtimeVersion.replace(/^v/, ''), 10) >= 2;
    const names = '/var/run/cdi/devices.test-found.json';
    try {
      await mkdir(dirname(names), { recursive: true });
      await writeFile(names, JSON.stringify(namesOf(name, 'f1', 'f2')));
      await found.start();
      await nodeHas('2 of 2', name);
      const limits = { resources: { limits: { [name]: '1' } } };
      await cluster.apply(podWith('found', 'echo $FOUND_DEVICES $NAMED', limits, {}));
      await cluster.logContains('found', knowsNames ? 'f2 by-its-name-f2' : 'f2');
      assert.deepEqual(found.calls('PreStartContainer'), ['PreStartContainer {"devices_ids":["f2"]}']);
      await remove('found');
    } finally {
      await found.kill();
      await rm(names, { force: true });
    }
    await nodeHas('0 of 2', name);
  });
});
