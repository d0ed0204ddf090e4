import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import { ContainerConfig } from '../../cri/index.ts';
import type { Container, PodSpec } from '../../kinds/index.ts';
import { seededRandom } from '../../lib/index.ts';
import type { PodEvent } from '../../pods/index.ts';
import { type ContainerInputs, containerConfig } from '../containers/container-config.ts';
import { NodePlanner, type NodePlannerDeps, type NodePlannerSettings } from './node-planner.ts';

const { signal } = new AbortController();
const settings: NodePlannerSettings = {
  node: {
    cgroups: 'v1',
    memoryCapacity: 1n << 33n,
    swapCapacity: 0n,
    swapController: 'absent',
    swapBehavior: 'NoSwap',
    hugePageSizes: [],
    cpuQuota: 'enforced',
    cpuPeriodUs: 100_000n,
    oomKills: 'process',
  },
  podLogsDir: '/var/log/pods',
  podsDir: '/var/lib/kubelet/pods',
  seccomp: { profileRoot: '/var/lib/kubelet/seccomp', fallback: 'Unconfined' },
  selinux: 'disabled',
  thermalThrottlePaths: [],
  clusterDns: [],
  clusterDomain: 'cluster.local',
  resolvConf: '/etc/resolv.conf',
  stopSignals: 'ignored',
};
const main: Container = {
  name: 'main',
  image: 'example/web:1',
  command: ['sh', '-c', 'echo $(GREETING) $(NOBODY)'],
  args: ['$(GREETING)'],
  env: [{ name: 'GREETING', value: 'hello' }],
  terminationMessagePath: '/dev/termination-log',
  volumeMounts: [{ name: 'data', mountPath: '/data' }],
  workingDir: '/tmp',
  tty: true,
};

const mapping = { hostId: 65_536, containerId: 0, length: 65_536 };
const ownUsers = { mode: 'POD', uids: [mapping], gids: [mapping] } as const;

function createHarness(other: Partial<NodePlannerSettings> = {}) {
  const events: PodEvent[] = [];
  const nodeEvents: PodEvent[] = [];
  const deps: NodePlannerDeps = {
    random: seededRandom(1),
    journal: { event: (_pod, event) => void events.push(event), step: () => {} },
    nodeEvent: (event) => void nodeEvents.push(event),
    readNodeFile: async (path) => (path === '/etc/hosts' ? '127.0.0.1 node\n' : 'nameserver 8.8.8.8\n'),
    nodeIps: () => ['192.0.2.1'],
    allocatable: () => new Map(),
    cgroupParent: (pod) => `/kubepods/pod${pod.metadata.uid}`,
    runtimeHandler: async () => 'crun',
    supportsRecursiveReadOnly: (handler) => handler === 'crun',
    users: async ({ spec }) => (spec.hostUsers === false ? ownUsers : { mode: 'NODE' }),
    objects: undefined,
    services: () => ({ state: 'none' }),
    volumes: () => new Map([['data', { kind: 'path', hostPath: '/host/data' }]]),
    volumeGroups: () => [],
  };
  return { planner: new NodePlanner({ ...settings, ...other }, deps), events, nodeEvents };
}
const request = (container: Container = main, spec: Partial<PodSpec> = {}) => ({
  pod: aPod({ spec: { containers: [container], enableServiceLinks: true, ...spec } }),
  container,
  restartCount: 3,
  image: { ref: 'sha256:1', uid: undefined, username: '' },
  podIps: ['10.0.0.7'],
  targetId: undefined,
});

test("plans a sandbox with the node's resolver, its cgroup and its runtime handler", async () => {
  const { planner, events, nodeEvents } = createHarness();
  const { config, runtimeHandler } = await planner.sandboxPlan(aPod(), 1, signal);
  assert.equal(runtimeHandler, 'crun');
  assert.deepEqual(config.dnsConfig?.servers, ['8.8.8.8']);
  assert.equal(config.linux?.cgroupParent, '/kubepods/poduid-1');
  assert.deepEqual([events.length, nodeEvents.length], [1, 1]);
});

test('applies user namespaces to the sandbox, the container and each mount', async () => {
  const asked = request(
    { ...main, volumeMounts: [{ name: 'data', mountPath: '/data' }] },
    { hostUsers: false },
  );
  const { planner } = createHarness();
  const sandbox = await planner.sandboxPlan(asked.pod, 0, signal);
  assert.deepEqual(sandbox.config.linux?.securityContext?.namespaceOptions?.usernsOptions, ownUsers);
  const { config } = await planner.containerPlan(asked, signal);
  assert.deepEqual(config.linux?.securityContext?.namespaceOptions?.usernsOptions, ownUsers);
  const mounts = config.mounts ?? [];
  assert.ok(mounts.length > 1);
  for (const { uidMappings, gidMappings } of mounts)
    assert.deepEqual([uidMappings, gidMappings], [ownUsers.uids, ownUsers.gids]);
});

test('plans a container with command, environment, mounts and resources', async () => {
  const { config, files } = await createHarness().planner.containerPlan(request(), signal);
  const whole = ContainerConfig.create(config);
  assert.deepEqual({ ...whole.metadata }, { name: 'main', attempt: 3 });
  assert.equal(whole.image?.image, 'sha256:1');
  assert.equal(whole.image?.userSpecifiedImage, 'example/web:1');
  assert.deepEqual(whole.command, ['sh', '-c', 'echo hello $(NOBODY)']);
  assert.deepEqual(whole.args, ['hello']);
  assert.equal(whole.logPath, 'main/3.log');
  assert.deepEqual(
    [whole.workingDir, whole.tty, whole.stdin, whole.stopSignal],
    ['/tmp', true, false, 'RUNTIME_DEFAULT'],
  );
  assert.deepEqual(
    whole.envs.map(({ key, value }) => `${key}=${Buffer.from(value)}`),
    ['GREETING=hello'],
  );
  assert.equal(whole.annotations['io.kubernetes.container.restartCount'], '3');
  assert.deepEqual(
    whole.mounts.map(({ containerPath }) => containerPath),
    ['/data', '/etc/hosts', '/dev/termination-log'],
  );
  assert.equal(whole.linux?.securityContext?.runAsUser?.value, 0n);
  assert.deepEqual(
    files.map(({ path, mode }) => [path.replace(/[0-9a-f]{8}$/, 'ID'), mode]),
    [
      ['/var/lib/kubelet/pods/uid-1/etc-hosts', 0o644],
      ['/var/lib/kubelet/pods/uid-1/containers/main/ID', 0o666],
    ],
  );
  assert.equal(files[1]?.path, whole.mounts[2]?.hostPath);
  assert.match(files[0]?.text ?? '', /\n10\.0\.0\.7\tweb\n$/);
});

test("mounts image volumes with the pod's runtime handler", async () => {
  const container = { ...main, volumeMounts: [{ name: 'model', mountPath: '/model', subPath: 'small' }] };
  const volumeImages = new Map([
    ['model', { kind: 'image', image: 'sha256:2', asked: 'example/model:1' } as const],
  ]);
  const { config } = await createHarness().planner.containerPlan(
    { ...request(container), volumeImages },
    signal,
  );
  const [first] = ContainerConfig.create(config).mounts;
  assert.deepEqual(
    { ...first?.image },
    {
      image: 'sha256:2',
      annotations: {},
      userSpecifiedImage: 'example/model:1',
      runtimeHandler: 'crun',
      imageRef: '',
    },
  );
  assert.deepEqual([first?.imageSubPath, first?.hostPath, first?.readonly], ['small', '', true]);
});

test("copies the node's hosts file for a pod on the host network", async () => {
  const { files } = await createHarness().planner.containerPlan(request(main, { hostNetwork: true }), signal);
  assert.equal(files[0]?.text, '# Kubernetes-managed hosts file (host network).\n127.0.0.1 node\n');
});

test("copies stdin and stdinOnce from the container's spec to the CRI config", async () => {
  const planned = async (container: Partial<Container>) =>
    (await createHarness().planner.containerPlan(request({ ...main, ...container }), signal)).config;
  const { stdin, stdinOnce } = await planned({ stdin: true, stdinOnce: true });
  assert.deepEqual([stdin, stdinOnce], [true, true]);
  const silent = await planned({});
  assert.deepEqual([silent.stdin, silent.stdinOnce], [false, false]);
});

test('a pod on the host network has the addresses of the node', async () => {
  const env = [{ name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIPs' } } }];
  for (const [hostNetwork, expected] of [
    [true, '192.0.2.1'],
    [false, '10.0.0.7'],
  ] as const) {
    const own = { ...request({ ...main, env }, { hostNetwork }), podIps: hostNetwork ? [] : ['10.0.0.7'] };
    const { config } = await createHarness().planner.containerPlan(own, signal);
    const found = config.envs?.find(({ key }) => key === 'IP')?.value;
    assert.equal(Buffer.from(found ?? '').toString(), expected);
  }
});

test('a container with a mount at /etc/hosts gets no generated hosts file', async () => {
  const own = {
    ...main,
    volumeMounts: [{ name: 'data', mountPath: '/etc/hosts' }],
    terminationMessagePath: '',
  };
  const { files } = await createHarness().planner.containerPlan(request(own), signal);
  assert.deepEqual(files, []);
});

test('an ephemeral container joins the process namespace of its target container', async () => {
  const planned = await createHarness().planner.containerPlan({ ...request(), targetId: 'abc' }, signal);
  assert.deepEqual(planned.config.linux?.securityContext?.namespaceOptions, {
    network: 'POD',
    ipc: 'POD',
    pid: 'TARGET',
    targetId: 'abc',
    usernsOptions: { mode: 'NODE' },
  });
  const shared = await createHarness().planner.containerPlan(
    { ...request(main, { shareProcessNamespace: true }), targetId: 'abc' },
    signal,
  );
  assert.equal(shared.config.linux?.securityContext?.namespaceOptions?.pid, 'POD');
});

test('sets the CRI stop signal only when the feature is enabled', async () => {
  const container = { ...main, lifecycle: { stopSignal: 'SIGRTMIN+3' } };
  const off = await createHarness().planner.containerPlan(request(container), signal);
  const on = await createHarness({ stopSignals: 'honoured' }).planner.containerPlan(
    request(container),
    signal,
  );
  assert.deepEqual([off.config.stopSignal, on.config.stopSignal], [undefined, 'SIGRTMINPLUS3']);
});

test('rejects a container whose volume is missing, with the message for its status', async () => {
  const container = { ...main, volumeMounts: [{ name: 'gone', mountPath: '/x' }] };
  await assert.rejects(createHarness().planner.containerPlan(request(container), signal), {
    code: 'CONTAINER_CONFIG',
    message: 'cannot find volume "gone" to mount into container "main"',
  });
});

test('adds variables, mounts and annotations of devices before those of the pod', async () => {
  const inputs: ContainerInputs = {
    restartCount: 0,
    imageRef: 'sha256:1',
    environment: {
      objects: undefined,
      services: { state: 'none' },
      allocatable: new Map(),
      podIps: [],
      hostIps: [],
    },
    mounts: {
      volumes: new Map([['data', { kind: 'path', hostPath: '/host/data' }]]),
      hostsFile: '/h',
      terminationFile: undefined,
      recursiveReadOnly: 'unsupported',
      runtimeHandler: '',
      selinux: 'disabled',
    },
    security: {
      imageUser: { kind: 'uid', uid: 0n },
      seccomp: settings.seccomp,
      extraGroups: [],
      thermalThrottlePaths: [],
    },
    node: settings.node,
    grants: {
      devices: [{ containerPath: '/dev/x', hostPath: '/dev/x', permissions: 'rw' }],
      cdiDevices: ['example.com/gpu=0'],
      variables: [{ name: 'GREETING', value: Buffer.from('device') }],
      mounts: [{ containerPath: '/lib/x', hostPath: '/lib/x' }],
      annotations: { slot: '1' },
    },
    userNamespace: { mode: 'POD', uids: [{ hostId: 65536, containerId: 0, length: 65536 }], gids: [] },
  };
  const config = await containerConfig(request().pod, main, inputs, signal);
  assert.deepEqual(
    config.envs?.map(({ key, value }) => `${key}=${value}`),
    ['GREETING=device', 'GREETING=hello'],
  );
  assert.deepEqual(
    config.mounts?.map(({ containerPath }) => containerPath),
    ['/lib/x', '/data'],
  );
  assert.ok(config.mounts?.every(({ uidMappings }) => uidMappings?.[0]?.hostId === 65536));
  assert.deepEqual(config.CDIDevices, [{ name: 'example.com/gpu=0' }]);
  assert.equal(config.annotations?.['slot'], '1');
  assert.equal(config.command?.[2], 'echo hello $(NOBODY)');
});
