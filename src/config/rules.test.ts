import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryConfigFiles } from '../../test/fakes/memory-config-files.ts';
import { KubelingError } from '../lib/index.ts';
import type { Finding } from './findings.ts';
import { type LoadedConfig, loadConfig } from './load.ts';

const header = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';

function load(text: string, ...argv: string[]): Promise<LoadedConfig> {
  const files = memoryConfigFiles({ '/k.yaml': `${header}${text}\n` });
  return loadConfig(['--config=/k.yaml', ...argv], { files, cwd: '/' });
}

async function problemsOf(text: string, ...argv: string[]): Promise<readonly Finding[]> {
  try {
    await load(text, ...argv);
    return [];
  } catch (error) {
    assert.ok(error instanceof KubelingError, String(error));
    return error.details['problems'] as readonly Finding[];
  }
}

/**
 * Invalid configurations: the lines after apiVersion and kind, and each field with a problem and
 * its expected message.
 */
const broken: readonly (readonly [
  text: string,
  ...problems: (readonly [field: string, message: RegExp])[],
])[] = [
  ['runOnce: true', ['runOnce', /must be false/]],
  ['systemCgroups: /system', ['systemCgroups', /needs cgroupRoot/]],
  [
    'imageGCLowThresholdPercent: 85',
    ['imageGCLowThresholdPercent', /less than imageGCHighThresholdPercent \(85\)/],
  ],
  [
    'imageMaximumGCAge: 1m',
    ['imageMaximumGCAge', /more than imageMinimumGCAge \(2m0s\): current value is 1m0s/],
  ],
  ['imageMinimumGCAge: -1s', ['imageMinimumGCAge', /0s or longer/]],
  ['maxParallelImagePulls: 3\nserializeImagePulls: true', ['maxParallelImagePulls', /must be 1 while/]],
  ['containerLogMaxSize: big', ['containerLogMaxSize', /quantity such as 10Mi: current value is "big"/]],
  [
    'preloadedImagesVerificationAllowlist: [a]',
    ['preloadedImagesVerificationAllowlist', /NeverVerifyAllowlistedImages/],
  ],
  [
    'imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\npreloadedImagesVerificationAllowlist: ["r.io/a:tag", "r.io/*x", " r.io/a", "/*", "r.io/a@sha256:ab"]',
    ...[0, 1, 2, 3, 4].map((at) => [`preloadedImagesVerificationAllowlist[${at}]`, /without tag/] as const),
  ],
  [
    'featureGates: {KubeletEnsureSecretPulledImages: false}\nimagePullCredentialsVerificationPolicy: AlwaysVerify',
    ['imagePullCredentialsVerificationPolicy', /needs the feature gate/],
  ],
  ['tlsCertFile: /c', ['tlsCertFile', /together with tlsPrivateKeyFile/]],
  ['tlsPrivateKeyFile: /k', ['tlsPrivateKeyFile', /together with tlsCertFile/]],
  [
    'tlsCurvePreferences: [29, 1, 29]',
    ['tlsCurvePreferences[1]', /must be one of 23/],
    ['tlsCurvePreferences[2]', /twice/],
  ],
  [
    'featureGates: {RotateKubeletServerCertificate: false}\nserverTLSBootstrap: true',
    ['serverTLSBootstrap', /RotateKubeletServerCertificate/],
  ],
  [
    'enableSystemLogQuery: true\nenableSystemLogHandler: false',
    ['enableSystemLogQuery', /needs enableSystemLogHandler/],
  ],
  [
    'registerWithTaints: [{key: -x, value: "a b", effect: Sometimes, timeAdded: "2026-01-01"}]',
    ['registerWithTaints[0].key', /must be a name/],
    ['registerWithTaints[0].value', /letters/],
    ['registerWithTaints[0].effect', /NoSchedule, PreferNoSchedule, NoExecute/],
    ['registerWithTaints[0].timeAdded', /must not be given/],
  ],
  [
    'registerWithTaints: [{key: a, effect: NoExecute}, {key: a, value: b, effect: NoExecute}]',
    ['registerWithTaints[1]', /must not be given twice: a:NoExecute/],
  ],
  [
    'featureGates: {CustomCPUCFSQuotaPeriod: false}\ncpuCFSQuotaPeriod: 10ms',
    ['cpuCFSQuotaPeriod', /must be 100ms/],
  ],
  ['memoryReservationPolicy: TieredReservation', ['memoryReservationPolicy', /MemoryQoS/]],
  [
    'featureGates: {KubeletCrashLoopBackOffMax: false}\ncrashLoopBackOff: {maxContainerRestartPeriod: 10s}',
    ['crashLoopBackOff.maxContainerRestartPeriod', /needs the feature gate/],
  ],
  ['userNamespaces: {idsPerPod: 65537}', ['userNamespaces.idsPerPod', /multiple of 65536/]],
  ['userNamespaces: {idsPerPod: 0}', ['userNamespaces.idsPerPod', /multiple of 65536/]],
  ['userNamespaces: {idsPerPod: 4294967296}', ['userNamespaces.idsPerPod', /below 4294967296/]],
  [
    'qosReserved: {cpu: 10%, memory: "10"}',
    ['qosReserved[cpu]', /only memory/],
    ['qosReserved[memory]', /0% to 100%/],
  ],
  [
    'allowedUnsafeSysctls: [vm.swappiness, "kernel.*", "a b", kernel.hostname]',
    ['allowedUnsafeSysctls[0]', /of its own/],
    ['allowedUnsafeSysctls[1]', /of its own/],
    ['allowedUnsafeSysctls[2]', /name of a sysctl/],
    ['allowedUnsafeSysctls[3]', /of its own/],
  ],
  [
    'systemReserved: {cpu: lots, gpu: "1"}\nkubeReserved: {memory: "-1"}',
    ['systemReserved[cpu]', /quantity of 0 or more: current value is "lots"/],
    ['systemReserved[gpu]', /only cpu, memory, ephemeral-storage, pid/],
    ['kubeReserved[memory]', /quantity of 0 or more/],
  ],
  [
    'reservedSystemCPUs: 0-1\nsystemReservedCgroup: /s\nkubeReservedCgroup: /k',
    ['reservedSystemCPUs', /together with systemReservedCgroup/],
  ],
  [
    'enforceNodeAllocatable: [pods, pods, none, everything, system-reserved, kube-reserved-compressible]',
    ['enforceNodeAllocatable[1]', /twice/],
    ['enforceNodeAllocatable[2]', /none must stand alone/],
    ['enforceNodeAllocatable[3]', /must be one of/],
    ['enforceNodeAllocatable[4]', /needs systemReservedCgroup/],
    ['enforceNodeAllocatable[5]', /needs kubeReservedCgroup/],
  ],
  [
    'enforceNodeAllocatable: [system-reserved, system-reserved-compressible]\nsystemReservedCgroup: /s',
    ['enforceNodeAllocatable', /must not hold both/],
  ],
  ['cgroupsPerQOS: false', ['enforceNodeAllocatable[0]', /pods needs cgroupsPerQOS/]],
  [
    'reservedMemory: [{numaNode: 0, limits: {memory: "0", disk: 1Gi}}, {numaNode: 0, limits: {memory: 1Gi}}]',
    ['reservedMemory[0].limits[memory]', /more than 0/],
    ['reservedMemory[0].limits[disk]', /memory or hugepages/],
    ['reservedMemory[1].limits[memory]', /twice for NUMA node 0/],
  ],
  [
    'cpuManagerPolicyOptions: {full-pcpus-only: "true"}',
    ['cpuManagerPolicyOptions', /need cpuManagerPolicy to be static/],
  ],
  [
    'cpuManagerPolicy: static\ncpuManagerPolicyOptions: {full-pcpu-only: "true", align-by-socket: "true", strict-cpu-reservation: maybe}',
    ['cpuManagerPolicyOptions[full-pcpu-only]', /did you mean full-pcpus-only/],
    ['cpuManagerPolicyOptions[align-by-socket]', /CPUManagerPolicyAlphaOptions/],
    ['cpuManagerPolicyOptions[strict-cpu-reservation]', /true or false/],
  ],
  [
    'cpuManagerPolicy: static\ncpuManagerPolicyOptions: {distribute-cpus-across-numa: "true", prefer-align-cpus-by-uncorecache: "true"}',
    ['cpuManagerPolicyOptions', /must not have both/],
  ],
  [
    'featureGates: {CPUManagerPolicyAlphaOptions: true}\ntopologyManagerPolicy: single-numa-node\ncpuManagerPolicy: static\ncpuManagerPolicyOptions: {align-by-socket: "true"}',
    ['cpuManagerPolicyOptions', /align-by-socket/],
  ],
  [
    'topologyManagerPolicyOptions: {max-allowable-numa-nodes: "4", prefer-closest-numa-nodes: x, other: z}',
    ['topologyManagerPolicyOptions[max-allowable-numa-nodes]', /from 8 up/],
    ['topologyManagerPolicyOptions[prefer-closest-numa-nodes]', /true or false/],
    ['topologyManagerPolicyOptions[other]', /not a known option/],
  ],
  [
    'evictionHard: {memory.availabel: 1Gi, nodefs.available: 101%, imagefs.available: "0", pid.available: -5}'.replace(
      '-5',
      '"-5"',
    ),
    ['evictionHard[memory.availabel]', /not a known signal \(did you mean memory\.available\?\)/],
    ['evictionHard[nodefs.available]', /from 0% to 100%/],
    ['evictionHard[imagefs.available]', /more than 0/],
    ['evictionHard[pid.available]', /more than 0/],
  ],
  ['evictionSoft: {memory.available: 1Gi}', ['evictionSoft[memory.available]', /needs a grace period/]],
  [
    'evictionSoft: {memory.available: 1Gi}\nevictionSoftGracePeriod: {memory.available: -1s}',
    ['evictionSoftGracePeriod[memory.available]', /0s or more/],
  ],
  ['evictionSoftGracePeriod: {x: 1s}', ['evictionSoftGracePeriod[x]', /not a known signal/]],
  [
    'evictionMinimumReclaim: {memory.available: "-1"}',
    ['evictionMinimumReclaim[memory.available]', /0 or more/],
  ],
  ['shutdownGracePeriod: 500ms', ['shutdownGracePeriod', /0s or at least 1s: current value is 500ms/]],
  [
    'shutdownGracePeriodCriticalPods: 10s',
    ['shutdownGracePeriodCriticalPods', /not be longer than shutdownGracePeriod/],
  ],
  [
    'shutdownGracePeriod: 30s\nshutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 1}]',
    ['shutdownGracePeriodByPodPriority', /must not be used together/],
  ],
  [
    'featureGates: {GracefulNodeShutdown: false, GracefulNodeShutdownBasedOnPodPriority: false, WindowsGracefulNodeShutdown: false}\nshutdownGracePeriod: 30s',
    ['shutdownGracePeriod', /needs the feature gate GracefulNodeShutdown/],
  ],
  [
    'logging: {format: json, vmodule: [{filePattern: "", verbosity: 1}, {filePattern: "a=b", verbosity: 1}]}',
    ['logging.vmodule', /needs logging\.format to be text/],
    ['logging.vmodule[0].filePattern', /must not be empty/],
    ['logging.vmodule[1].filePattern', /must not contain/],
  ],
  [
    'logging: {options: {text: {splitStream: true}, json: {infoBufferSize: 1Ki}}}',
    ['logging.options.text.splitStream', /LoggingAlphaOptions/],
    ['logging.options.json.infoBufferSize', /LoggingAlphaOptions/],
  ],
  ['featureGates: {Foo: true}', ['featureGates[Foo]', /^unrecognized feature gate: Foo$/]],
  [
    'featureGates: {NodeSwap: false}',
    ['featureGates[NodeSwap]', /^cannot set feature gate NodeSwap to false, feature is locked to true$/],
  ],
];

for (const [text, ...expected] of broken) {
  test(`rejects the configuration ${text.replaceAll('\n', '; ')}`, async () => {
    const problems = await problemsOf(text);
    for (const [field, message] of expected) {
      const found = problems.find((problem) => problem.field === field && message.test(problem.message));
      assert.ok(found !== undefined, `${field}: ${JSON.stringify(problems)}`);
      const isDefault = text.startsWith('cgroupsPerQOS');
      assert.equal(found.source, isDefault ? 'default' : '/k.yaml');
      assert.equal(found.line === undefined, isDefault);
    }
    // An invalid configuration may have several problems, but each of them must be expected.
    for (const problem of problems)
      assert.ok(
        expected.some(([field]) => field === problem.field),
        JSON.stringify(problem),
      );
  });
}

test('reports a broken rule at the position of the value', async () => {
  const [inFile] = await problemsOf('maxPods: 5\nimageMaximumGCAge: 1m');
  assert.deepEqual([inFile?.source, inFile?.line, inFile?.column], ['/k.yaml', 4, 1]);
  const [byFlag] = await problemsOf('maxPods: 5', '--system-cgroups=/s');
  assert.deepEqual(
    [byFlag?.source, byFlag?.line, byFlag?.field],
    ['--system-cgroups', undefined, 'systemCgroups'],
  );
});

const accepted = [
  'systemCgroups: /system\ncgroupRoot: /',
  'imageMaximumGCAge: 3m',
  'imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\npreloadedImagesVerificationAllowlist: [r.io/a, "r.io/*", "r.io:5000/a/b", "r.io:5000/*", alpine]',
  'registerWithTaints: [{key: example.com/a, value: b, effect: NoSchedule}, {key: example.com/a, effect: NoExecute}]',
  'userNamespaces: {idsPerPod: 131072}',
  'qosReserved: {memory: 50%}',
  'allowedUnsafeSysctls: ["kernel.msg*", "net.*", net.ipv4.route.min_pmtu, kernel/shmmax, "fs.mqueue.*", kernel.sem]',
  'enforceNodeAllocatable: [none]',
  'cgroupsPerQOS: false\nenforceNodeAllocatable: []',
  'enforceNodeAllocatable: [pods, system-reserved, kube-reserved-compressible]\nsystemReservedCgroup: /s\nkubeReservedCgroup: /k',
  'cpuManagerPolicy: static\ncpuManagerPolicyOptions: {full-pcpus-only: "true"}\nreservedSystemCPUs: "0"',
  'topologyManagerPolicyOptions: {max-allowable-numa-nodes: "10"}',
  'memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0, limits: {memory: 1Gi, hugepages-2Mi: 4Mi}}, {numaNode: 1, limits: {memory: 1073741824}}]',
  'evictionHard: {memory.available: 0%, nodefs.available: 100%, imagefs.inodesFree: "1000"}',
  'evictionSoft: {memory.available: 1.5Gi}\nevictionSoftGracePeriod: {memory.available: 1m30s}\nevictionMinimumReclaim: {memory.available: 0Mi}',
  'shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s',
  'shutdownGracePeriodByPodPriority: [{priority: 100, shutdownGracePeriodSeconds: 10}, {priority: 0, shutdownGracePeriodSeconds: 60}]',
  'featureGates: {LoggingAlphaOptions: true}\nlogging: {options: {text: {splitStream: true, infoBufferSize: 1Ki}}}',
  'featureGates: {MemoryQoS: true}\nmemoryReservationPolicy: TieredReservation',
  'tlsCertFile: /c\ntlsPrivateKeyFile: /k\ntlsCurvePreferences: [29, 4588]',
  'tracing: {endpoint: "localhost:4317", samplingRatePerMillion: 1000000}',
  'enableSystemLogQuery: true',
  'singleProcessOOMKill: false',
  'featureGates: {AllAlpha: true, AllBeta: true}',
];

for (const text of accepted) {
  test(`accepts the configuration ${text.replaceAll('\n', '; ')}`, async () => {
    assert.deepEqual(await problemsOf(text), []);
  });
}

const warned: readonly (readonly [text: string, field: string])[] = [
  ['readOnlyPort: 10255', 'readOnlyPort'],
  ['tlsMinVersion: VersionTLS10', 'tlsMinVersion'],
  ['tlsMinVersion: VersionTLS13\ntlsCipherSuites: [TLS_AES_128_GCM_SHA256]', 'tlsCipherSuites'],
  ['tlsCipherSuites: [TLS_RSA_WITH_RC4_128_SHA]', 'tlsCipherSuites[0]'],
  ['kubeletCgroups: /a\nkubeReservedCgroup: /b', 'kubeletCgroups'],
  ['memorySwap: {swapBehavior: LimitedSwap}', 'memorySwap.swapBehavior'],
  ['evictionHard: {containerfs.available: 5%}', 'evictionHard[containerfs.available]'],
  ['featureGates: {SystemdWatchdog: true}', 'featureGates[SystemdWatchdog]'],
  ['containerLogMaxSize: "0"', 'containerLogMaxSize'],
];

for (const [text, field] of warned) {
  test(`accepts the configuration with a warning: ${text.replaceAll('\n', '; ')}`, async () => {
    const { warnings } = await load(text);
    assert.deepEqual(
      warnings.map((warning) => warning.field),
      [field],
    );
  });
}
