import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryConfigFiles } from '../../test/fakes/memory-config-files.ts';
import { KubelingError } from '../lib/index.ts';
import { flagTexts, kubeletFlagHelp, kubeletFlagTable, parseCommandLine } from './command-line.ts';
import type { Finding } from './findings.ts';
import { nodeFlags, removedFlags, runFlags } from './kubelet-flags.ts';
import { loadConfig } from './load.ts';
import { toWire } from './render.ts';

const deps = { files: memoryConfigFiles({}), cwd: '/work' };

async function problemsOf(...argv: string[]): Promise<readonly Finding[]> {
  try {
    await loadConfig(argv, deps);
    return [];
  } catch (error) {
    assert.ok(error instanceof KubelingError, String(error));
    return error.details['problems'] as readonly Finding[];
  }
}

test('parses the flags that do not set a field of the configuration', () => {
  const { flags, problems } = parseCommandLine(
    [
      '--kubeconfig=k.conf',
      '--bootstrap-kubeconfig=/b.conf',
      '--hostname_override= Node-A ',
      '--node-ip=10.0.0.1,fd00::1',
      '--node-labels=a=b,c',
      '--node-labels=example.com/d=e',
      '--cloud-provider=external',
      '--root-dir=/r',
      '--cert-dir=certs',
      '--lock-file=/l',
      '--exit-on-lock-contention',
      '--runtime-cgroups=/rt',
      '--image-credential-provider-config=/c',
      '--image-credential-provider-bin-dir=/bin',
      '--hook-timeout=90s',
      '--empty-dir-quota',
      '--eviction-memory-guard',
      '--detach-dead-volumes',
      '--shutdown-on-sigterm',
      '--kubepods-weight=proportional',
      '--notify-ready=ready',
      '--after-node-deletion=stay',
      '--stream-authorization=by-method',
      '--keep-api-pods',
      '--housekeeping-interval=5s',
      '--print-config',
      '--validate-config=true',
      '--version=raw',
    ],
    '/work',
  );
  assert.deepEqual(problems, []);
  assert.deepEqual(flags, {
    config: '',
    configDir: '',
    validateConfig: true,
    printConfig: true,
    help: false,
    version: 'raw',
    lockFile: '/l',
    exitOnLockContention: true,
    notifyReady: 'ready',
    kubeconfig: '/work/k.conf',
    bootstrapKubeconfig: '/b.conf',
    hostnameOverride: 'node-a',
    nodeIps: ['10.0.0.1', 'fd00::1'],
    nodeLabels: { a: 'b', c: '', 'example.com/d': 'e' },
    cloudProvider: 'external',
    keepApiPods: true,
    streamAuthorization: 'by-method',
    afterNodeDeletion: 'stay',
    rootDir: '/r',
    certDir: '/work/certs',
    runtimeCgroups: '/rt',
    imageCredentialProviderConfig: '/c',
    imageCredentialProviderBinDir: '/bin',
    hookTimeoutMs: 90_000,
    emptyDirQuota: true,
    evictionMemoryGuard: true,
    detachDeadVolumes: true,
    shutdownOnSigterm: true,
    kubepodsWeight: 'proportional',
    housekeepingIntervalMs: 5000,
    minimumContainerTtlMs: 0,
    maxDeadContainersPerContainer: 1,
    maxDeadContainers: -1,
    experimentalMounterPath: '',
    ignoreEvictionInAllocatable: false,
  });
});

/** A value for every flag that sets a field, with the expected value of that field. */
const settings: readonly (readonly [argument: string, field: string, value: unknown])[] = [
  ['--pod-manifest-path=/m', 'staticPodPath', '/m'],
  ['--pod-manifest-path=m', 'staticPodPath', '/work/m'],
  ['--manifest-url=http://a/b', 'staticPodURL', 'http://a/b'],
  ['--manifest-url-header=a:1,b:2,a:3', 'staticPodURLHeader', { a: ['1', '3'], b: ['2'] }],
  ['--sync-frequency=90s', 'syncFrequency', '1m30s'],
  ['--enable-server=false', 'enableServer', false],
  ['--address=::', 'address', '::'],
  ['--port=1', 'port', 1],
  ['--read-only-port=2', 'readOnlyPort', 2],
  [
    '--tls-cipher-suites=TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384',
    'tlsCipherSuites',
    ['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384'],
  ],
  ['--tls-min-version=VersionTLS13', 'tlsMinVersion', 'VersionTLS13'],
  ['--client-ca-file=/ca', 'authentication.x509.clientCAFile', '/ca'],
  ['--authentication-token-webhook=false', 'authentication.webhook.enabled', false],
  ['--authentication-token-webhook-cache-ttl=1m', 'authentication.webhook.cacheTTL', '1m0s'],
  ['--anonymous-auth', 'authentication.anonymous.enabled', true],
  ['--authorization-mode=AlwaysAllow', 'authorization.mode', 'AlwaysAllow'],
  ['--authorization-webhook-cache-unauthorized-ttl=1s', 'authorization.webhook.cacheUnauthorizedTTL', '1s'],
  ['--register-node=false', 'registerNode', false],
  [
    '--register-with-taints=a=b:NoSchedule,c:NoExecute',
    'registerWithTaints',
    [
      { key: 'a', value: 'b', effect: 'NoSchedule' },
      { key: 'c', effect: 'NoExecute' },
    ],
  ],
  ['--provider-id=x://1', 'providerID', 'x://1'],
  ['--cluster-dns=1.1.1.1,2.2.2.2', 'clusterDNS', ['1.1.1.1', '2.2.2.2']],
  ['--resolv-conf=', 'resolvConf', ''],
  ['--max-pods=7', 'maxPods', 7],
  ['--pod-max-pids=100', 'podPidsLimit', 100],
  ['--oom-score-adj=-5', 'oomScoreAdj', -5],
  ['--container-runtime-endpoint=/run/x.sock', 'containerRuntimeEndpoint', '/run/x.sock'],
  ['--serialize-image-pulls=false', 'serializeImagePulls', false],
  ['--minimum-image-ttl-duration=5m', 'imageMinimumGCAge', '5m0s'],
  ['--container-log-max-size=1Mi', 'containerLogMaxSize', '1Mi'],
  ['--cgroup-driver=systemd', 'cgroupDriver', 'systemd'],
  ['--fail-cgroupv1', 'failCgroupV1', true],
  ['--cpu-cfs-quota-period=50ms', 'cpuCFSQuotaPeriod', '50ms'],
  ['--qos-reserved=memory=50%', 'qosReserved', { memory: '50%' }],
  [
    '--topology-manager-policy-options=prefer-closest-numa-nodes=true',
    'topologyManagerPolicyOptions',
    { 'prefer-closest-numa-nodes': 'true' },
  ],
  ['--system-reserved=cpu=200m,memory=500Mi', 'systemReserved', { cpu: '200m', memory: '500Mi' }],
  ['--reserved-cpus=0-1', 'reservedSystemCPUs', '0-1'],
  [
    '--reserved-memory=0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=2Gi',
    'reservedMemory',
    [
      { numaNode: 0, limits: { memory: '1Gi', 'hugepages-1Gi': '2Gi' } },
      { numaNode: 1, limits: { memory: '2Gi' } },
    ],
  ],
  ['--enforce-node-allocatable=none', 'enforceNodeAllocatable', ['none']],
  ['--enforce-node-allocatable=', 'enforceNodeAllocatable', []],
  [
    '--eviction-hard=memory.available<1Gi,nodefs.available<10%',
    'evictionHard',
    { 'memory.available': '1Gi', 'nodefs.available': '10%' },
  ],
  [
    '--eviction-minimum-reclaim=imagefs.available=2Gi',
    'evictionMinimumReclaim',
    { 'imagefs.available': '2Gi' },
  ],
  ['--seccomp-default', 'seccompDefault', true],
  ['--allowed-unsafe-sysctls=net.*,kernel.msg*', 'allowedUnsafeSysctls', ['net.*', 'kernel.msg*']],
  ['--logging-format=json', 'logging.format', 'json'],
  ['--log-flush-frequency=1s', 'logging.flushFrequency', '1s'],
  ['-v=4', 'logging.verbosity', 4],
  ['--v=4', 'logging.verbosity', 4],
  [
    '--vmodule=pleg*=4,status=2',
    'logging.vmodule',
    [
      { filePattern: 'pleg*', verbosity: 4 },
      { filePattern: 'status', verbosity: 2 },
    ],
  ],
  ['--feature-gates=MemoryQoS=true,AllBeta=true', 'featureGates', { MemoryQoS: true, AllBeta: true }],
];

for (const [argument, field, value] of settings) {
  test(`${argument} sets the field ${field}`, async () => {
    const loaded = await loadConfig([argument], deps);
    let at: unknown = toWire(loaded.config);
    for (const name of field.split('.')) at = (at as Readonly<Record<string, unknown>>)[name];
    assert.deepEqual(at, value);
    const origin = loaded.origins.of(field);
    assert.equal(origin.kind === 'flag' && origin.flag, `-${argument.split('=')[0]?.replace(/^--?/, '-')}`);
  });
}

test('accepts several --cpu-manager-policy-options flags with one name=value pair each', async () => {
  const argv = [
    '--cpu-manager-policy=static',
    '--cpu-manager-policy-options=full-pcpus-only=true',
    '--cpu-manager-policy-options=strict-cpu-reservation=true',
  ];
  const { config } = await loadConfig(argv, deps);
  assert.deepEqual(config.cpuManagerPolicyOptions, {
    'full-pcpus-only': 'true',
    'strict-cpu-reservation': 'true',
  });
});

test('warns once about each deprecated flag, and never about current ones', async () => {
  const argv = [
    '--max-pods=1',
    '--max-pods=2',
    '--v=2',
    '--provider-id=a',
    '--seccomp-default',
    '--containerd=/x',
    '--storage-driver-password=p',
  ];
  const { warnings } = await loadConfig(argv, deps);
  assert.deepEqual(
    warnings.map(({ source, message }) => [source, message]),
    [
      ['--max-pods', 'is deprecated: set maxPods in a file'],
      ['--containerd', 'is deprecated: it has no effect'],
      ['--storage-driver-password', 'is deprecated: it has no effect'],
    ],
  );
});

const refused: readonly (readonly [argv: readonly string[], source: string, message: RegExp])[] = [
  [['--max-pod=5'], '--max-pod', /not a known flag \(did you mean --max-pods\?\)/],
  [['run'], 'command line', /"run" belongs to none/],
  [['--enable-server', 'false'], 'command line', /"false"/],
  [['--max-pods'], '--max-pods', /needs a value/],
  [['--max-pods=5.5'], '--max-pods', /whole number/],
  [['--sync-frequency=5'], '--sync-frequency', /duration/],
  [['--cgroup-driver=systemctl'], '--cgroup-driver', /cgroupfs, systemd/],
  [['--address=here'], '--address', /IP address/],
  [['--tls-cipher-suites=NULL'], '--tls-cipher-suites', /must be one of/],
  [['--register-with-taints=a'], '--register-with-taints', /taints such as/],
  [['--register-with-taints=a=b:Maybe'], '--register-with-taints', /NoSchedule/],
  [['--reserved-memory=0:memory'], '--reserved-memory', /memory=1Gi/],
  [['--reserved-memory=x'], '--reserved-memory', /reservations such as/],
  [['--vmodule=a'], '--vmodule', /pleg\*=4/],
  [['--eviction-hard=memory.available=1Gi'], '--eviction-hard', /key<value/],
  [['--feature-gates=MemoryQoS'], '--feature-gates', /key=value/],
  [['--feature-gates=MemoryQoS=perhaps'], '--feature-gates', /true or false/],
  [['--feature-gates=Foo=true'], '--feature-gates', /unrecognized feature gate: Foo/],
  [['--node-labels=kubernetes.io/role=a'], '--node-labels', /must not set/],
  [['--node-labels=a b=c'], '--node-labels', /must be a name/],
  [['--node-labels=a=b c'], '--node-labels', /the value must be/],
  [['--node-ip=10.0.0.1,10.0.0.2'], '--node-ip', /one of each family/],
  [['--node-ip=10.0.0.1,::'], '--node-ip', /must not name two/],
  [['--hostname-override=a_b'], '--hostname-override', /DNS name/],
  [['--root-dir='], '--root-dir', /absolute path/],
  [['--root-dir=var'], '--root-dir', /absolute path/],
  [['--root-dir=/a/../b'], '--root-dir', /normalized/],
  [['--exit-on-lock-contention'], '--exit-on-lock-contention', /needs --lock-file/],
  [
    ['--image-credential-provider-config=/a'],
    '--image-credential-provider-config',
    /needs --image-credential-provider-bin-dir/,
  ],
  [['--bootstrap-kubeconfig=/a'], '--bootstrap-kubeconfig', /needs --kubeconfig/],
  [['--cloud-provider=aws'], '--cloud-provider', /external/],
  [['--runonce'], '--runonce', /must be false/],
];

for (const [argv, source, message] of refused) {
  test(`rejects ${argv.join(' ')}`, async () => {
    const problems = await problemsOf(...argv);
    assert.ok(
      problems.some((problem) => problem.source === source && message.test(problem.message)),
      JSON.stringify(problems),
    );
  });
}

test('accepts a trailing slash of the root directory', async () => {
  assert.deepEqual(await problemsOf('--root-dir=/var/lib/kubelet/'), []);
});

test('lists every flag once in the help, within the requested width', () => {
  const help = kubeletFlagHelp(100);
  for (const name of Object.keys(kubeletFlagTable())) {
    assert.equal(
      help
        .split('\n')
        .filter(
          (line) =>
            new RegExp(`--${name}( |$)`).test(line) && /^ {2}(-|\s)/.test(line) && !/^ {10}/.test(line),
        ).length,
      1,
      name,
    );
  }
  for (const line of help.split('\n')) assert.ok(line.length <= 110, line);
  assert.match(help, /--cgroup-driver cgroupfs\|systemd/);
});

test('rejects a hook time-out that is not positive', () => {
  for (const text of ['0s', '-1s']) {
    const { problems } = parseCommandLine([`--hook-timeout=${text}`], '/work');
    assert.match(JSON.stringify(problems), /must be a duration above 0s/);
  }
});

test('ignores node IPs that are not addresses, with a warning', () => {
  const { flags, problems, warnings } = parseCommandLine(['--node-ip=here,10.0.0.1'], '/');
  assert.deepEqual([flags.nodeIps, problems], [['10.0.0.1'], []]);
  assert.deepEqual(
    warnings.map(({ message }) => message),
    ['must be IP addresses: "here" is left out'],
  );
});

test('returns the values of flags that set no field of the configuration, by flag name, in the syntax of the command line', () => {
  const args = [
    '--cert-dir=/pki',
    '--node-ip=10.0.0.1,fd00::1',
    '--node-labels=a=b,c=d',
    '--hook-timeout=9s',
  ];
  const texts = flagTexts(parseCommandLine(args, '/').flags);
  assert.equal(texts['cert-dir'], '/pki');
  assert.equal(texts['node-ip'], '10.0.0.1,fd00::1');
  assert.equal(texts['node-labels'], 'a=b,c=d');
  assert.equal(texts['exit-on-lock-contention'], 'false');
  const known = new Set(Object.keys({ ...runFlags, ...nodeFlags, ...removedFlags }));
  const unknown = Object.keys(texts).filter((name) => !known.has(name));
  assert.deepEqual(unknown, []);
});
