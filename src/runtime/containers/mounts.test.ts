import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import { busybox, PodRuntimeRig, podOf } from '../../../test/fakes/pod-runtime-rig.ts';
import { aPod } from '../../../test/fakes/pods.ts';
import { registryOf } from '../../../test/simulator/index.ts';
import type { Container, PodSpec, VolumeMount } from '../../kinds/index.ts';
import { KubelingError, seededRandom } from '../../lib/index.ts';
import { ExpansionBudget } from './expansion.ts';
import {
  containerMounts,
  getsHostsFile,
  hostsFileOf,
  type MountInputs,
  newTerminationFile,
  volumeDevices,
} from './mounts.ts';

const { signal } = new AbortController();
const inputs: MountInputs = {
  volumes: new Map([
    ['data', { kind: 'path', hostPath: '/host/data', relabel: true }],
    ['fixed', { kind: 'path', hostPath: '/host/fixed', readOnly: true }],
    ['model', { kind: 'image', image: 'sha256:1', asked: 'example/model:1' }],
    ['disk', { kind: 'block', devicePath: '/host/disk' }],
    ['archive', { kind: 'block', devicePath: '/host/archive', readOnly: true }],
  ]),
  podIps: [],
  hostsFile: '/pods/uid-1/etc-hosts',
  terminationFile: undefined,
  recursiveReadOnly: 'supported',
  runtimeHandler: '',
  selinux: 'disabled',
  budget: new ExpansionBudget(),
  lookup: (name) =>
    new Map([
      ['A', 'a'],
      ['UP', '../x'],
      ['ROOT', '/x'],
    ]).get(name),
};
const made = (container: Partial<Container>, other: Partial<MountInputs> = {}, spec: Partial<PodSpec> = {}) =>
  containerMounts(aPod({ spec }), { name: 'main', ...container }, { ...inputs, ...other }, signal);
const mount = (parts: Partial<VolumeMount>) => ({
  volumeMounts: [{ name: 'data', mountPath: '/data', ...parts }],
});

const mounted: readonly [string, Partial<VolumeMount>, object][] = [
  [
    'a volume',
    {},
    { containerPath: '/data', hostPath: '/host/data', readonly: false, propagation: 'PROPAGATION_PRIVATE' },
  ],
  ['a relative path', { mountPath: 'data' }, { containerPath: '/data' }],
  ['a read-only mount', { readOnly: true }, { readonly: true, recursiveReadOnly: false }],
  ['a read-only volume', { name: 'fixed' }, { readonly: true }],
  ['propagation none', { mountPropagation: 'None' }, { propagation: 'PROPAGATION_PRIVATE' }],
  [
    'HostToContainer propagation',
    { mountPropagation: 'HostToContainer' },
    { propagation: 'PROPAGATION_HOST_TO_CONTAINER' },
  ],
  [
    'Bidirectional propagation',
    { mountPropagation: 'Bidirectional' },
    { propagation: 'PROPAGATION_BIDIRECTIONAL' },
  ],
  ['recursively read-only', { readOnly: true, recursiveReadOnly: 'Enabled' }, { recursiveReadOnly: true }],
  [
    'an image',
    { name: 'model', subPath: 'a' },
    {
      readonly: true,
      image: {
        image: 'sha256:1',
        userSpecifiedImage: 'example/model:1',
        runtimeHandler: '',
        annotations: {},
      },
      imageSubPath: 'a',
    },
  ],
];
for (const [what, parts, expected] of mounted) {
  test(`mounts: ${what}`, async () => {
    const [first] = await made(mount(parts));
    assert.deepEqual({ ...first, ...expected }, first);
  });
}

test('mounts: an image volume has no host path', async () => {
  const [first] = await made(mount({ name: 'model' }));
  assert.equal(first?.hostPath, undefined);
});

test('mounts: IfPossible recursive read-only falls back without runtime support', async () => {
  const [first] = await made(mount({ readOnly: true, recursiveReadOnly: 'IfPossible' }), {
    recursiveReadOnly: 'unsupported',
  });
  assert.equal(first?.recursiveReadOnly, false);
});

test('mounts: relabels only with SELinux and a volume that supports it', async () => {
  const [data] = await made(mount({}), { selinux: 'enabled' });
  const [fixed] = await made(mount({ name: 'fixed' }), { selinux: 'enabled' });
  assert.deepEqual([data?.selinuxRelabel, fixed?.selinuxRelabel], [true, false]);
});

const rro =
  'failed to resolve recursive read-only mode: volume "data" requested recursive read-only mode, but it is not';
const refused: readonly [string, Partial<VolumeMount>, Partial<MountInputs>, string][] = [
  ['a missing volume', { name: 'gone' }, {}, 'cannot find volume "gone" to mount into container "main"'],
  ['an unknown propagation', { mountPropagation: 'Odd' }, {}, 'invalid MountPropagation mode: "Odd"'],
  ['an absolute subPath', { subPath: '/x' }, {}, 'error SubPath `/x` must not be an absolute path'],
  [
    'a subPath with ..',
    { subPath: 'a/../b' },
    {},
    "unable to provision SubPath `a/../b`: must not contain '..'",
  ],
  ['a subPathExpr with an unset variable', { subPathExpr: '$(B)' }, {}, 'missing value for B'],
  [
    'a subPathExpr with ..',
    { subPathExpr: '$(UP)' },
    {},
    "unable to provision SubPath `../x`: must not contain '..'",
  ],
  [
    'an absolute subPathExpr',
    { subPathExpr: '$(ROOT)' },
    {},
    'error SubPath `/x` must not be an absolute path',
  ],
  [
    'a subPath on a node without subPath support',
    { subPath: 'a' },
    {},
    'failed to prepare subPath for volumeMount "data" of container "main": this node cannot mount parts of volumes yet',
  ],
  ['recursive read-only on a writable mount', { recursiveReadOnly: 'Enabled' }, {}, `${rro} read-only`],
  [
    'recursive read-only with propagation',
    { readOnly: true, recursiveReadOnly: 'IfPossible', mountPropagation: 'HostToContainer' },
    {},
    `${rro} compatible with propagation "HostToContainer"`,
  ],
  [
    'recursive read-only without runtime support',
    { readOnly: true, recursiveReadOnly: 'Enabled' },
    { recursiveReadOnly: 'unsupported' },
    `${rro} supported by the runtime`,
  ],
  [
    'an unknown recursive read-only mode',
    { readOnly: true, recursiveReadOnly: 'Odd' },
    {},
    'failed to resolve recursive read-only mode: unknown recursive read-only mode "Odd"',
  ],
];
for (const [what, parts, other, message] of refused) {
  test(`mounts: a container is rejected for ${what}`, async () => {
    await assert.rejects(made(mount(parts), other), { code: 'CONTAINER_CONFIG', message });
  });
}

test('mounts: distinguishes a subPath that cannot be created from an existing subPath that cannot be used', async () => {
  const refuses = async (details: Readonly<Record<string, string>>, message: string) => {
    const subPath = async () => {
      throw new KubelingError('VOLUME_UNUSABLE', 'why', { details });
    };
    await assert.rejects(made(mount({ subPath: 'a' }), { subPath }), { code: 'CONTAINER_CONFIG', message });
  };
  const of = 'for volumeMount "data" of container "main": why';
  await refuses({ missing: 'unmade' }, `failed to create subPath directory ${of}`);
  await refuses({}, `failed to prepare subPath ${of}`);
});

test('mounts: a subPath is mounted from the path that its preparation returned', async () => {
  const observed: unknown[] = [];
  const [first] = await made(mount({ subPathExpr: 'logs/$(A)' }), {
    subPath: async (subPath) => {
      observed.push(subPath);
      return '/safe/0';
    },
  });
  assert.equal(first?.hostPath, '/safe/0');
  assert.deepEqual(observed, [
    {
      containerName: 'main',
      index: 0,
      volumeName: 'data',
      specName: 'data',
      volumePath: '/host/data',
      path: 'logs/a',
    },
  ]);
});

test('mounts the hosts file only with a pod address or the host network, and not over a mount of the container', async () => {
  const own = { name: 'main', volumeMounts: [{ name: 'data', mountPath: '/etc/hosts' }] };
  assert.equal(getsHostsFile(aPod(), { name: 'main' }, []), false);
  assert.equal(getsHostsFile(aPod(), { name: 'main' }, ['10.0.0.7']), true);
  assert.equal(getsHostsFile(aPod({ spec: { hostNetwork: true } }), { name: 'main' }, []), true);
  assert.equal(getsHostsFile(aPod(), own, ['10.0.0.7']), false);
  assert.deepEqual(await made({}, { podIps: ['10.0.0.7'] }), [
    { containerPath: '/etc/hosts', hostPath: '/pods/uid-1/etc-hosts', selinuxRelabel: false },
  ]);
});

test('the termination message file is the last mount', async () => {
  const mounts = await made(
    { terminationMessagePath: 'dev/termination-log', ...mount({}) },
    { terminationFile: '/pods/uid-1/containers/main/0a1b2c3d', podIps: ['10.0.0.7'] },
  );
  assert.deepEqual(
    mounts.map(({ containerPath }) => containerPath),
    ['/data', '/etc/hosts', '/dev/termination-log'],
  );
});

test('each instance of a container with terminationMessagePath gets a separate termination message file', () => {
  const random = seededRandom(1);
  const container = { name: 'main', terminationMessagePath: '/dev/termination-log' };
  const path = newTerminationFile('/pods/uid-1', container, random);
  assert.match(path ?? '', /^\/pods\/uid-1\/containers\/main\/[0-9a-f]{8}$/);
  assert.notEqual(newTerminationFile('/pods/uid-1', container, random), path);
  assert.equal(newTerminationFile('/pods/uid-1', { name: 'main' }, random), undefined);
  assert.equal(hostsFileOf('/pods/uid-1'), '/pods/uid-1/etc-hosts');
});

test('passes block volumes to the runtime as devices', () => {
  const devices = (name: string, devicePath = '/dev/x') =>
    volumeDevices({ name: 'main', volumeDevices: [{ name, devicePath }] }, inputs.volumes);
  assert.deepEqual(devices('disk'), [
    { containerPath: '/dev/x', hostPath: '/host/disk', permissions: 'mrw' },
  ]);
  assert.equal(devices('archive')[0]?.permissions, 'r');
  assert.throws(() => devices('data'), {
    code: 'CONTAINER_CONFIG',
    message: 'cannot find volume "data" to pass into container "main"',
  });
  assert.throws(() => devices('disk', 'x'), { message: 'error DevicePath `x` must be an absolute path' });
});

test('mounts: rejects mounting a block volume', async () => {
  await assert.rejects(made(mount({ name: 'disk' })), {
    message: 'cannot find volume "disk" to mount into container "main"',
  });
});

test("mounts: an image volume has the pod's image name, the runtime handler and the annotations, and no host path", async () => {
  const pod = aPod({ metadata: { annotations: { team: 'blue' } } });
  const container = { name: 'main', ...mount({ name: 'model' }) };
  const [made] = await containerMounts(pod, container, { ...inputs, runtimeHandler: 'crun' }, signal);
  assert.deepEqual(made, {
    containerPath: '/data',
    propagation: 'PROPAGATION_PRIVATE',
    recursiveReadOnly: false,
    readonly: true,
    image: {
      image: 'sha256:1',
      userSpecifiedImage: 'example/model:1',
      runtimeHandler: 'crun',
      annotations: { team: 'blue' },
    },
    imageSubPath: '',
  });
});

const files = 'r.io/files:1';
const registry = registryOf([{ reference: files, command: ['x'] }]);
const mounting = (name: string) => ({ volumeMounts: [{ name, mountPath: '/files' }] });
const volumes = [
  { name: 'files', image: { reference: files, pullPolicy: 'Always' } },
  { name: 'absent', image: { reference: 'r.io/absent:1', pullPolicy: 'IfNotPresent' } },
];

describe('image volumes', () => {
  it('image volumes are pulled when a container that mounts them starts, and on no other sync', async () => {
    using harness = new PodRuntimeRig({ registry, flavour: 'containerd-2' });
    const pod = podOf({ plain: {}, mounts: mounting('files') }, { volumes });
    assert.equal((await harness.sync(pod)).error, undefined);
    assert.equal(harness.calls.filter((call) => call === 'pullImage').length, 1);
    for (let again = 0; again < 3; again++) await harness.sync(pod);
    assert.equal(harness.calls.filter((call) => call === 'pullImage').length, 1);
    assert.deepEqual(harness.eventsOf('Pulling'), [`Pulling image "${files}"`]);
  });

  it('an image volume that cannot be pulled blocks only the containers that mount it', async () => {
    using harness = new PodRuntimeRig({ registry, flavour: 'containerd-2' });
    const pod = podOf({ broken: mounting('absent'), plain: {}, sound: mounting('files') }, { volumes });
    const { actions } = await harness.sync(pod);
    assert.deepEqual(actions.map(({ target, failure }) => [target, failure?.reason]).slice(1), [
      ['broken', 'ErrImagePull'],
      ['plain', undefined],
      ['sound', undefined],
    ]);
    const failed = harness.events
      .filter(({ reason }) => reason === 'Failed')
      .map(({ message, fieldPath }) => [message, fieldPath]);
    assert.deepEqual(failed.at(-1), ['Error: ErrImagePull', 'spec.containers{broken}']);
    assert.equal((await harness.sync(pod)).actions.at(-1)?.failure?.reason, 'ImagePullBackOff');
  });

  it('a runtime without image volume support gives an error that explains this', async () => {
    using harness = new PodRuntimeRig({ registry });
    const pod = podOf({ mounts: { ...mounting('files'), image: busybox } }, { volumes });
    const failure = (await harness.sync(pod)).actions.at(-1)?.failure;
    assert.equal(failure?.reason, 'CreateContainerError');
    assert.match(
      failure.message,
      /failed to mkdir "".* \(the container mounts an image at \/files, which requires containerd 2\.1 or CRI-O 1\.31\)$/,
    );
  });
});
