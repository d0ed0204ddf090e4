import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import type { Container, PodSecurityContext, SecurityContext } from '../../kinds/index.ts';
import {
  appArmorProblem,
  containerSecurityContext,
  imageUser,
  type SecurityInputs,
} from './security-context.ts';

const inputs: SecurityInputs = {
  imageUser: imageUser(undefined, ''),
  namespaces: { network: 'POD', pid: 'CONTAINER', ipc: 'POD' },
  seccomp: { profileRoot: '/var/lib/kubelet/seccomp', fallback: 'Unconfined' },
  extraGroups: [],
  thermalThrottlePaths: [],
};

interface Case {
  readonly pod?: PodSecurityContext;
  readonly own?: SecurityContext;
  readonly annotations?: Record<string, string>;
  readonly inputs?: Partial<SecurityInputs>;
}

function made({ pod, own, annotations = {}, inputs: other = {} }: Case) {
  const container: Container = { name: 'main', securityContext: own };
  const whole = aPod({ metadata: { annotations }, spec: { containers: [container], securityContext: pod } });
  return containerSecurityContext(whole, container, { ...inputs, ...other });
}

test('a container without securityContext gets the default user, capabilities and masked paths', () => {
  const context = made({});
  assert.deepEqual(context.runAsUser, { value: 0n });
  assert.equal(context.runAsGroup, undefined);
  assert.equal(context.capabilities, undefined);
  assert.deepEqual([context.privileged, context.readonlyRootfs, context.noNewPrivs], [false, false, false]);
  assert.deepEqual(context.namespaceOptions, inputs.namespaces);
  assert.deepEqual(context.seccomp, { profileType: 'Unconfined' });
  assert.deepEqual(context.maskedPaths, [
    '/proc/asound',
    '/proc/acpi',
    '/proc/interrupts',
    '/proc/kcore',
    '/proc/keys',
    '/proc/latency_stats',
    '/proc/timer_list',
    '/proc/timer_stats',
    '/proc/sched_debug',
    '/proc/scsi',
    '/sys/firmware',
    '/sys/devices/virtual/powercap',
  ]);
  assert.deepEqual(context.readonlyPaths, [
    '/proc/bus',
    '/proc/fs',
    '/proc/irq',
    '/proc/sys',
    '/proc/sysrq-trigger',
  ]);
});

test("masks the machine's thermal throttle paths when they exist", () => {
  const path = '/sys/devices/system/cpu/cpu0/thermal_throttle';
  assert.equal(made({ inputs: { thermalThrottlePaths: [path] } }).maskedPaths?.at(-1), path);
});

test('procMount Unmasked masks nothing', () => {
  const { maskedPaths, readonlyPaths } = made({ own: { procMount: 'Unmasked' } });
  assert.deepEqual([maskedPaths, readonlyPaths], [[], []]);
});

const users: readonly [string, Case, bigint | undefined, string | undefined][] = [
  ['runAsUser of the container', { pod: { runAsUser: 1 }, own: { runAsUser: 2 } }, 2n, undefined],
  ['runAsUser of the pod', { pod: { runAsUser: 1 } }, 1n, undefined],
  ['the numeric user of the image', { inputs: { imageUser: imageUser(33n, '') } }, 33n, undefined],
  ['the named user of the image', { inputs: { imageUser: imageUser(undefined, 'www') } }, undefined, 'www'],
  ['root without any user', {}, 0n, undefined],
];
for (const [what, given, uid, name] of users) {
  test(`user of a container: ${what}`, () => {
    const { runAsUser, runAsUsername } = made(given);
    assert.deepEqual([runAsUser?.value, runAsUsername], [uid, name]);
  });
}

test('securityContext of the container overrides that of the pod', () => {
  const context = made({
    pod: { runAsGroup: 5, seLinuxOptions: { level: 'pod' } },
    own: { runAsGroup: 6, seLinuxOptions: { level: 'own' } },
  });
  assert.deepEqual(context.runAsGroup, { value: 6n });
  assert.deepEqual(context.selinuxOptions, { level: 'own' });
  assert.deepEqual(made({ pod: { runAsGroup: 5 } }).runAsGroup, { value: 5n });
});

test('passes the securityContext fields of the container to the runtime', () => {
  const context = made({
    own: {
      privileged: true,
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] },
    },
  });
  assert.deepEqual([context.privileged, context.readonlyRootfs, context.noNewPrivs], [true, true, true]);
  assert.deepEqual(context.capabilities, { addCapabilities: ['NET_ADMIN'], dropCapabilities: ['ALL'] });
});

test('supplemental groups are the fsGroup, the supplementalGroups and the groups of volumes', () => {
  const context = made({
    pod: { fsGroup: 1, supplementalGroups: [2, 3], supplementalGroupsPolicy: 'Strict' },
    inputs: { extraGroups: [9] },
  });
  assert.deepEqual(context.supplementalGroups, [1n, 2n, 3n, 9n]);
  assert.equal(context.supplementalGroupsPolicy, 'Strict');
  assert.throws(() => made({ pod: { supplementalGroupsPolicy: 'Odd' } }), {
    code: 'CONTAINER_CONFIG',
    message: 'unsupported supplementalGroupsPolicy: Odd',
  });
});

const where = '(pod: "web_default(uid-1)", container: main)';
const refusals: readonly [string, Case, string][] = [
  [
    'runAsUser is 0',
    { pod: { runAsNonRoot: true, runAsUser: 0 } },
    `container's runAsUser breaks non-root policy ${where}`,
  ],
  [
    'the image runs as root',
    { own: { runAsNonRoot: true } },
    `container has runAsNonRoot and image will run as root ${where}`,
  ],
  [
    'the image has a named user',
    { own: { runAsNonRoot: true }, inputs: { imageUser: imageUser(undefined, 'www') } },
    `container has runAsNonRoot and image has non-numeric user (www), cannot verify user is non-root ${where}: set securityContext.runAsUser to the number of user www`,
  ],
  [
    'the image has an invalid user id',
    { own: { runAsNonRoot: true }, inputs: { imageUser: imageUser(4_294_967_295n, '') } },
    `container has runAsNonRoot and image has an invalid user id (4294967295). (Must be 1-(2147483647)) ${where}`,
  ],
];
for (const [what, given, message] of refusals) {
  test(`runAsNonRoot rejects a container when ${what}`, () => {
    assert.throws(() => made(given), { code: 'CONTAINER_CONFIG', message });
  });
}

test('runAsNonRoot accepts user IDs other than 0, and a container can override it', () => {
  made({ pod: { runAsNonRoot: true }, own: { runAsUser: 7 } });
  made({ pod: { runAsNonRoot: true }, inputs: { imageUser: imageUser(7n, '') } });
  made({ pod: { runAsNonRoot: true }, own: { runAsNonRoot: false } });
});

const root = '/var/lib/kubelet/seccomp';
const seccomps: readonly [string, Case, object][] = [
  [
    'profile of the container',
    { pod: { seccompProfile: { type: 'Unconfined' } }, own: { seccompProfile: { type: 'RuntimeDefault' } } },
    { profileType: 'RuntimeDefault' },
  ],
  [
    'profile of the pod',
    { pod: { seccompProfile: { type: 'RuntimeDefault' } } },
    { profileType: 'RuntimeDefault' },
  ],
  [
    'default of the node',
    { inputs: { seccomp: { profileRoot: root, fallback: 'RuntimeDefault' } } },
    { profileType: 'RuntimeDefault' },
  ],
  [
    'Unconfined is kept',
    {
      own: { seccompProfile: { type: 'Unconfined' } },
      inputs: { seccomp: { profileRoot: root, fallback: 'RuntimeDefault' } },
    },
    { profileType: 'Unconfined' },
  ],
  [
    'a Localhost profile',
    { own: { seccompProfile: { type: 'Localhost', localhostProfile: 'a/b.json' } } },
    { profileType: 'Localhost', localhostRef: `${root}/a/b.json` },
  ],
];
for (const [what, given, expected] of seccomps) {
  test(`seccomp: ${what}`, () => assert.deepEqual(made(given).seccomp, expected));
}

test('seccomp: rejects a Localhost profile without a name', () => {
  for (const localhostProfile of [undefined, '']) {
    assert.throws(() => made({ own: { seccompProfile: { type: 'Localhost', localhostProfile } } }), {
      code: 'CONTAINER_CONFIG',
      message: 'localhostProfile must be set if seccompProfile type is Localhost.',
    });
  }
});

const annotated = (value: string) => ({ 'container.apparmor.security.beta.kubernetes.io/main': value });
const armours: readonly [string, Case, object | undefined, string | undefined][] = [
  ['nothing', {}, undefined, undefined],
  [
    'the container’s',
    { own: { appArmorProfile: { type: 'Unconfined' } }, annotations: annotated('runtime/default') },
    { profileType: 'Unconfined' },
    'unconfined',
  ],
  [
    "an annotation overrides the pod's field",
    { pod: { appArmorProfile: { type: 'Unconfined' } }, annotations: annotated('localhost/x') },
    { profileType: 'Localhost', localhostRef: 'x' },
    'localhost/x',
  ],
  [
    'the pod’s',
    { pod: { appArmorProfile: { type: 'RuntimeDefault' } } },
    { profileType: 'RuntimeDefault' },
    'runtime/default',
  ],
  ['an invalid annotation', { annotations: annotated('what') }, undefined, undefined],
];
for (const [what, given, profile, legacy] of armours) {
  test(`AppArmor: ${what}`, () => {
    const { apparmor, apparmorProfile } = made(given);
    assert.deepEqual([apparmor, apparmorProfile], [profile, legacy]);
  });
}

test('AppArmor: a host without AppArmor rejects only pods that require a profile', () => {
  const refused = 'Cannot enforce AppArmor: AppArmor is not enabled on the host';
  const of = (type: string) => aPod({ spec: { securityContext: { appArmorProfile: { type } } } });
  const annotated = aPod({
    metadata: { annotations: { 'container.apparmor.security.beta.kubernetes.io/main': 'runtime/default' } },
    spec: { containers: [{ name: 'main' }] },
  });
  assert.equal(appArmorProblem(of('RuntimeDefault'), 'disabled'), refused);
  assert.equal(appArmorProblem(annotated, 'disabled'), refused);
  assert.equal(appArmorProblem(of('RuntimeDefault'), 'enabled'), undefined);
  assert.equal(
    appArmorProblem(of('Localhost'), 'enabled'),
    'Cannot enforce AppArmor: invalid empty AppArmor profile name',
  );
  assert.equal(appArmorProblem(of('Unconfined'), 'disabled'), undefined);
  assert.equal(appArmorProblem(aPod(), 'disabled'), undefined);
});

test('AppArmor: rejects a Localhost profile without a name', () => {
  assert.throws(() => made({ own: { appArmorProfile: { type: 'Localhost' } } }), {
    code: 'CONTAINER_CONFIG',
    message: 'missing localhost apparmor profile name',
  });
});

test('seccomp: rejects a Localhost profile outside of the profile directory', () => {
  for (const localhostProfile of ['/etc/passwd', '../secret', 'a/../../b'])
    assert.throws(() => made({ own: { seccompProfile: { type: 'Localhost', localhostProfile } } }), {
      code: 'CONTAINER_CONFIG',
      message: `localhostProfile "${localhostProfile}" must stay in the node's directory of seccomp profiles`,
    });
});
