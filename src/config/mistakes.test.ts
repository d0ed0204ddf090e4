import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryConfigFiles } from '../../test/fakes/memory-config-files.ts';
import { KubelingError } from '../lib/index.ts';
import type { Finding } from './findings.ts';
import { loadConfig } from './load.ts';

const header = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';

async function problemsOf(
  texts: Readonly<Record<string, string>>,
  ...argv: string[]
): Promise<readonly Finding[]> {
  try {
    await loadConfig(argv, { files: memoryConfigFiles(texts), cwd: '/' });
    return [];
  } catch (error) {
    assert.ok(error instanceof KubelingError && error.code === 'CONFIG_INVALID', String(error));
    return error.details['problems'] as readonly Finding[];
  }
}

/** Returns the problems of a file with this text below the header; the text starts on line 3. */
function inFile(text: string): Promise<readonly Finding[]> {
  return problemsOf({ '/k.yaml': `${header}${text}` }, '--config=/k.yaml');
}

const mistakes: readonly (readonly [
  text: string,
  line: number,
  column: number,
  field: string,
  message: RegExp,
])[] = [
  ['maxPod: 5', 3, 1, 'maxPod', /^is not a known field \(did you mean maxPods\?\)$/],
  ['maxpods: 5', 3, 1, 'maxpods', /did you mean maxPods/],
  ['colour: red', 3, 1, 'colour', /^is not a known field$/],
  ['clientCAFile: /a', 3, 1, 'clientCAFile', /did you mean authentication\.x509\.clientCAFile\?/],
  [
    'authentication:\n  anonymus:\n    enabled: true',
    4,
    3,
    'authentication.anonymus',
    /did you mean anonymous/,
  ],
  ['maxPods: 5\nport: 1\nmaxPods: 6', 5, 1, 'maxPods', /^is written twice \(first on line 3\)$/],
  ['evictionHard:\n  pid.available: "5"\n  pid.available: "6"', 5, 3, 'evictionHard[pid.available]', /twice/],
  ['kind: KubeletConfiguration', 3, 1, 'kind', /^is written twice \(first on line 2\)$/],
  [
    'maxPods: many',
    3,
    10,
    'maxPods',
    /^must be a whole number from 0 to 2147483647: current value is "many"$/,
  ],
  ['maxPods: "5"', 3, 10, 'maxPods', /current value is "5"/],
  ['maxPods: 1.5', 3, 10, 'maxPods', /current value is 1\.5/],
  ['maxPods: 99999999999', 3, 10, 'maxPods', /current value is 99999999999/],
  ['maxOpenFiles: 9223372036854775807', 3, 15, 'maxOpenFiles', /current value is 9223372036854775807/],
  ['enableServer: 1', 3, 15, 'enableServer', /^must be true or false: current value is 1$/],
  ['enableServer: "true"', 3, 15, 'enableServer', /current value is "true"/],
  [
    'syncFrequency: 60',
    3,
    16,
    'syncFrequency',
    /^must be a duration such as 300ms, 10s or 1h30m: current value is 60$/,
  ],
  ['syncFrequency: 0', 3, 16, 'syncFrequency', /must be a duration/],
  ['syncFrequency: soon', 3, 16, 'syncFrequency', /current value is "soon"/],
  ['syncFrequency: -1s', 3, 16, 'syncFrequency', /^must be 1ms or longer: current value is -1s$/],
  ['clusterDomain: no', 3, 16, 'clusterDomain', /^must be a string, in quotes: current value is false$/],
  ['clusterDomain: [a]', 3, 16, 'clusterDomain', /^must be a string: current value is a list$/],
  ['clusterDNS: 10.96.0.10', 3, 13, 'clusterDNS', /^must be a list: current value is "10\.96\.0\.10"$/],
  [
    'clusterDNS:\n- 10.96.0.10\n- dns.local',
    5,
    3,
    'clusterDNS[1]',
    /^must be an IP address: current value is "dns\.local"$/,
  ],
  ['clusterDNS: [~]', 3, 14, 'clusterDNS[0]', /must not be null/],
  ['evictionHard: 5', 3, 15, 'evictionHard', /^must be a map of keys and values$/],
  [
    'evictionHard:\n  nodefs.available: 5',
    4,
    21,
    'evictionHard[nodefs.available]',
    /in quotes: current value is 5/,
  ],
  ['authentication: true', 3, 17, 'authentication', /^must be a map of fields$/],
  ['port: 70000', 3, 7, 'port', /^must be a whole number from 1 to 65535: current value is 70000$/],
  ['readOnlyPort: -1', 3, 15, 'readOnlyPort', /from 0 to 65535/],
  ['oomScoreAdj: 1001', 3, 14, 'oomScoreAdj', /from -1000 to 1000/],
  ['imageGCHighThresholdPercent: 101', 3, 30, 'imageGCHighThresholdPercent', /from 0 to 100/],
  ['kubeAPIQPS: -1', 3, 13, 'kubeAPIQPS', /from 0/],
  ['registryBurst: -1', 3, 16, 'registryBurst', /from 0/],
  ['podsPerCore: -1', 3, 14, 'podsPerCore', /from 0/],
  ['maxOpenFiles: -1', 3, 15, 'maxOpenFiles', /from 0/],
  ['nodeLeaseDurationSeconds: -1', 3, 27, 'nodeLeaseDurationSeconds', /from 1/],
  ['nodeStatusMaxImages: -2', 3, 22, 'nodeStatusMaxImages', /from -1/],
  ['containerLogMaxFiles: 1', 3, 23, 'containerLogMaxFiles', /from 2/],
  ['containerLogMaxWorkers: 0', 3, 25, 'containerLogMaxWorkers', /from 1/],
  [
    'containerLogMonitorInterval: 2s',
    3,
    30,
    'containerLogMonitorInterval',
    /^must be 3s or longer: current value is 2s$/,
  ],
  ['maxParallelImagePulls: 0', 3, 24, 'maxParallelImagePulls', /from 1/],
  ['cpuCFSQuotaPeriod: 2s', 3, 20, 'cpuCFSQuotaPeriod', /^must be from 1ms to 1s: current value is 2s$/],
  [
    'crashLoopBackOff: {maxContainerRestartPeriod: 6m}',
    3,
    47,
    'crashLoopBackOff.maxContainerRestartPeriod',
    /from 1s to 5m0s/,
  ],
  [
    'memoryThrottlingFactor: 0',
    3,
    25,
    'memoryThrottlingFactor',
    /^must be a number above 0 and up to 1: current value is 0$/,
  ],
  ['memoryThrottlingFactor: .inf', 3, 25, 'memoryThrottlingFactor', /must be a number/],
  [
    'tracing: {samplingRatePerMillion: 1000001}',
    3,
    35,
    'tracing.samplingRatePerMillion',
    /from 0 to 1000000/,
  ],
  ['tracing: {endpoint: "http://x"}', 3, 21, 'tracing.endpoint', /dns, unix or unix-abstract/],
  ['iptablesDropBit: 32', 3, 18, 'iptablesDropBit', /from 0 to 31/],
  [
    'cgroupDriver: sytemd',
    3,
    15,
    'cgroupDriver',
    /^must be one of cgroupfs, systemd \(did you mean systemd\?\): current value is "sytemd"$/,
  ],
  ['hairpinMode: veth', 3, 14, 'hairpinMode', /must be one of/],
  ['topologyManagerPolicy: strict', 3, 24, 'topologyManagerPolicy', /must be one of/],
  ['topologyManagerScope: node', 3, 23, 'topologyManagerScope', /must be one of/],
  ['memorySwap: {swapBehavior: UnlimitedSwap}', 3, 28, 'memorySwap.swapBehavior', /"", NoSwap, LimitedSwap/],
  ['logging: {format: xml}', 3, 19, 'logging.format', /text, json/],
  ['authorization: {mode: RBAC}', 3, 23, 'authorization.mode', /AlwaysAllow, Webhook/],
  ['tlsMinVersion: TLS12', 3, 16, 'tlsMinVersion', /VersionTLS12/],
  ['tlsCipherSuites: [TLS_NULL]', 3, 19, 'tlsCipherSuites[0]', /must be one of/],
  ['address: localhost', 3, 10, 'address', /must be an IP address/],
  ['podLogsDir: /var/../log', 3, 13, 'podLogsDir', /normalized path/],
  ['podLogsDir: /größe', 3, 13, 'podLogsDir', /ASCII/],
  ['staticPodURL: file:///x', 3, 15, 'staticPodURL', /http or https/],
  ['containerRuntimeEndpoint: tcp://1.2.3.4:5', 3, 27, 'containerRuntimeEndpoint', /must be a socket/],
  ['podCIDR: 10.0.0.0', 3, 10, 'podCIDR', /networks/],
  ['reservedSystemCPUs: 3-1', 3, 21, 'reservedSystemCPUs', /list of CPUs/],
  ['showHiddenMetricsForVersion: "1.30"', 3, 30, 'showHiddenMetricsForVersion', /1\.35/],
  [
    'reservedMemory: [{numaNode: 0, limits: {memory: lots}}]',
    3,
    49,
    'reservedMemory[0].limits[memory]',
    /must be a quantity/,
  ],
  [
    'registerWithTaints: [{key: a, efect: NoSchedule}]',
    3,
    31,
    'registerWithTaints[0].efect',
    /did you mean effect/,
  ],
  ['featureGates: {MemoryQoS: "yes"}', 3, 27, 'featureGates[MemoryQoS]', /true or false/],
];

for (const [text, line, column, field, message] of mistakes) {
  test(`reports the problem in the configuration ${JSON.stringify(text)}`, async () => {
    const problems = await inFile(`${text}\n`);
    const found = problems.find((problem) => problem.field === field);
    assert.ok(found !== undefined, JSON.stringify(problems));
    assert.match(found.message, message);
    assert.deepEqual([found.source, found.line, found.column], ['/k.yaml', line, column]);
  });
}

test('reports three problems in different places together, with their lines', async () => {
  const texts = {
    '/k.yaml': `${header}maxPod: 5\nport: 70000\n`,
    '/d/a.conf': `${header}\nsyncFrequency: 1\n`,
  };
  await assert.rejects(
    loadConfig(['--config=/k.yaml', '--config-dir=/d', '--max-pods=x'], {
      files: memoryConfigFiles(texts),
      cwd: '/',
    }),
    (error) => {
      assert.ok(
        error instanceof KubelingError && error.code === 'CONFIG_INVALID' && error.kind === 'Invalid',
      );
      assert.equal(
        error.message,
        [
          'Cannot use the configuration because of 4 problems:',
          '  --max-pods: must be a whole number from 0 to 2147483647: current value is "x"',
          '  /k.yaml:3:1: maxPod: is not a known field (did you mean maxPods?)',
          '  /k.yaml:4:7: port: must be a whole number from 1 to 65535: current value is 70000',
          '  /d/a.conf:4:16: syncFrequency: must be a duration such as 300ms, 10s or 1h30m: current value is 1',
        ].join('\n'),
      );
      return true;
    },
  );
});

test('requires apiVersion and kind in a file', async () => {
  for (const [text, field, message] of [
    ['', '', /must not be empty/],
    ['# nothing\n', '', /must not be empty/],
    ['maxPods: 5\nkind: KubeletConfiguration\n', 'apiVersion', /it is missing/],
    ['maxPods: 5\napiVersion: kubelet.config.k8s.io/v1beta1\n', 'kind', /it is missing/],
    [
      'apiVersion: v1\nkind: KubeletConfiguration\n',
      'apiVersion',
      /must be kubelet\.config\.k8s\.io\/v1beta1: current value is "v1"/,
    ],
    ['apiVersion: kubelet.config.k8s.io/v1beta1\nkind: Pod\n', 'kind', /must be KubeletConfiguration/],
    ['- a\n', '', /must be a KubeletConfiguration/],
    ['just words\n', '', /must be a KubeletConfiguration/],
    [`${header}---\nmore: true\n`, '', /one document only/],
    ['a: [1\n', '', /./],
    ['a: *b\n', '', /anchor/],
    [`${header}a: ${'['.repeat(200_000)}\n`, '', /nested at most 100 levels/],
    [header + 'a: b\n'.repeat(40_000), '', /at most 100000 words and marks/],
  ] as const) {
    for (const argv of [['--config=/d/k.conf'], ['--config-dir=/d']]) {
      const problems = await problemsOf({ '/d/k.conf': text }, ...argv);
      const found = problems.find((problem) => problem.field === field && message.test(problem.message));
      assert.ok(found !== undefined, `${JSON.stringify(text)}: ${JSON.stringify(problems)}`);
      assert.equal(found.source, '/d/k.conf');
    }
  }
});

test('reports only the invalid field, and not the valid field after it', async () => {
  const problems = await inFile('shutdownGracePeriod: long\nshutdownGracePeriodCriticalPods: 10s\n');
  assert.deepEqual(
    problems.map(({ field }) => field),
    ['shutdownGracePeriod'],
  );
});

test('reports every problem in the same map', async () => {
  const problems = await inFile(
    'evictionHard: {memory.availabel: 1Gi, nodefs.available: 5, pid.available: "0"}\n',
  );
  assert.deepEqual(
    problems.map(({ field }) => field),
    ['evictionHard[memory.availabel]', 'evictionHard[nodefs.available]', 'evictionHard[pid.available]'].sort(
      (a, b) => a.localeCompare(b),
    ),
  );
});

test('does not quote secrets in messages', async () => {
  const texts = { '/k.yaml': `${header}staticPodURLHeader: {Authorization: hunter2, X: [[hunter2]]}\n` };
  await assert.rejects(
    loadConfig(['--config=/k.yaml', '--manifest-url-header=hunter2'], {
      files: memoryConfigFiles(texts),
      cwd: '/',
    }),
    (error) => {
      assert.ok(error instanceof KubelingError);
      assert.equal((error.details['problems'] as readonly Finding[]).length, 3);
      assert.doesNotMatch(error.message + JSON.stringify(error.details), /hunter2/);
      return true;
    },
  );
});

test('rejects the names of inherited object properties as unknown fields', async () => {
  const problems = await inFile('constructor: 1\n__proto__: 2\ntoString: 3\n');
  assert.deepEqual(
    problems.map(({ field }) => field),
    ['constructor', '__proto__', 'toString'],
  );
});
