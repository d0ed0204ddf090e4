import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod, type PodParts } from '../../../test/fakes/pods.ts';
import { PodSandboxConfig } from '../../cri/index.ts';
import type { PodSpec } from '../../kinds/index.ts';
import type { LinuxNode } from '../containers/linux-resources.ts';
import { podNamespaces, portMappings, type SandboxInputs, sandboxConfig } from './sandbox-config.ts';

const node: LinuxNode = {
  cgroups: 'v1',
  memoryCapacity: 1n << 33n,
  swapCapacity: 0n,
  swapController: 'absent',
  swapBehavior: 'NoSwap',
  hugePageSizes: [],
  cpuQuota: 'enforced',
  cpuPeriodUs: 100_000n,
  oomKills: 'process',
};
const inputs: SandboxInputs = {
  attempt: 2,
  podLogsDir: '/var/log/pods',
  cgroupParent: '/kubepods/poduid-1',
  dns: { clusterDns: ['10.96.0.10'], clusterDomain: 'cluster.local', nodeIps: [], resolvConf: '' },
  node,
};
const made = (parts: PodParts, other: Partial<SandboxInputs> = {}) =>
  PodSandboxConfig.create(sandboxConfig(aPod(parts), { ...inputs, ...other }).config);

test('sets name, labels and log directory of the pod in the sandbox config', () => {
  const config = made({ metadata: { labels: { app: 'web' }, annotations: { note: 'x' } } });
  assert.deepEqual({ ...config.metadata }, { name: 'web', namespace: 'default', uid: 'uid-1', attempt: 2 });
  assert.equal(config.hostname, 'web');
  assert.equal(config.logDirectory, '/var/log/pods/default_web_uid-1');
  assert.equal(config.labels['app'], 'web');
  assert.equal(config.labels['io.kubernetes.pod.uid'], 'uid-1');
  assert.deepEqual({ ...config.annotations }, { note: 'x' });
  assert.deepEqual(config.dnsConfig?.servers, ['10.96.0.10']);
  assert.equal(config.linux?.cgroupParent, '/kubepods/poduid-1');
});

test("leaves the sandbox's hostname empty on the host network", () => {
  assert.equal(made({ spec: { hostNetwork: true } }).hostname, '');
});

test('returns the DNS events with the sandbox config', () => {
  const dns = { ...inputs.dns, clusterDns: [] };
  const { events, nodeEvents } = sandboxConfig(aPod(), { ...inputs, dns });
  assert.deepEqual([events[0]?.reason, nodeEvents[0]?.reason], ['MissingClusterDNS', 'MissingClusterDNS']);
});

test("sets the sandbox process's seccomp profile and the pod's users, groups and SELinux options", () => {
  const context = made(
    {
      spec: {
        securityContext: {
          runAsUser: 1000,
          runAsGroup: 2000,
          fsGroup: 1,
          supplementalGroups: [2],
          supplementalGroupsPolicy: 'Strict',
          seLinuxOptions: { level: 's0' },
        },
      },
    },
    { extraGroups: [9] },
  ).linux?.securityContext;
  assert.equal(context?.seccomp?.profileType, 'RuntimeDefault');
  assert.equal(context?.runAsUser?.value, 1000n);
  assert.equal(context?.runAsGroup?.value, 2000n);
  assert.deepEqual(context?.supplementalGroups, [1n, 9n, 2n]);
  assert.equal(context?.supplementalGroupsPolicy, 'Strict');
  assert.equal(context?.selinuxOptions?.level, 's0');
  assert.equal(context?.privileged, false);
});

test('a sandbox is privileged when one container of any kind is privileged', () => {
  const privileged = { name: 'p', securityContext: { privileged: true } };
  for (const spec of [
    { containers: [privileged] },
    { initContainers: [privileged] },
    { ephemeralContainers: [privileged] },
  ]) {
    assert.equal(made({ spec }).linux?.securityContext?.privileged, true);
  }
});

test('converts sysctl names with slashes to names with dots in the sandbox config', () => {
  const sysctls = [
    { name: 'net/ipv4/ip_forward', value: '1' },
    { name: 'kernel.shmmax', value: '2' },
  ];
  assert.deepEqual(
    { ...made({ spec: { securityContext: { sysctls } } }).linux?.sysctls },
    {
      'net.ipv4.ip_forward': '1',
      'kernel.shmmax': '2',
    },
  );
});

const namespaces: readonly [string, Partial<PodSpec>, object][] = [
  ['own namespaces', {}, { network: 'POD', ipc: 'POD', pid: 'CONTAINER' }],
  [
    'the host’s',
    { hostNetwork: true, hostIPC: true, hostPID: true },
    { network: 'NODE', ipc: 'NODE', pid: 'NODE' },
  ],
  ['shared processes', { shareProcessNamespace: true }, { network: 'POD', ipc: 'POD', pid: 'POD' }],
];
for (const [what, spec, expected] of namespaces) {
  test(`sandbox namespaces: ${what}`, () => {
    assert.deepEqual(podNamespaces(aPod({ spec })), { ...expected, usernsOptions: undefined });
  });
}

test('maps the ports of regular containers, and only one of several ports with the same name', () => {
  const ports = [
    { name: 'http', containerPort: 80, hostPort: 8080 },
    { name: 'http', containerPort: 81 },
    { containerPort: 53, protocol: 'UDP', hostIP: '10.0.0.1' },
    { containerPort: 53, protocol: 'UDP', hostIP: 'fd00::1' },
    { containerPort: 53, protocol: 'UDP', hostIP: '10.0.0.1' },
    { containerPort: 7, protocol: 'ODD' },
  ];
  const pod = aPod({ spec: { containers: [{ name: 'a', ports }], initContainers: [{ name: 'i', ports }] } });
  assert.deepEqual(portMappings(pod), [
    { containerPort: 80, hostPort: 8080, hostIp: '', protocol: 'TCP' },
    { containerPort: 53, hostPort: 0, hostIp: '10.0.0.1', protocol: 'UDP' },
    { containerPort: 53, hostPort: 0, hostIp: 'fd00::1', protocol: 'UDP' },
    { containerPort: 7, hostPort: 0, hostIp: '', protocol: 'TCP' },
  ]);
});
