import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { memoryConfigFiles } from '../../test/fakes/memory-config-files.ts';
import { KubelingError } from '../lib/index.ts';
import { hostFiles } from './config-file.ts';
import { describeFinding, describeOrigin } from './findings.ts';
import { type LoadedConfig, loadConfig } from './load.ts';

const header = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';

/**
 * Loads the configuration from in-memory files, with `--config /etc/k.yaml` if that file exists.
 */
function load(texts: Readonly<Record<string, string>>, ...argv: string[]): Promise<LoadedConfig> {
  const config = Object.hasOwn(texts, '/etc/k.yaml') ? ['--config=/etc/k.yaml'] : [];
  return loadConfig([...config, ...argv], { files: memoryConfigFiles(texts), cwd: '/work' });
}

function origin(loaded: LoadedConfig, path: string): string {
  return describeOrigin(loaded.origins.of(path));
}

test('without flags and files, uses the defaults and opens no server', async () => {
  const { config, flags, warnings, configFiles } = await load({});
  assert.equal(config.authentication.anonymous.enabled, false);
  assert.equal(config.authentication.webhook.enabled, true);
  assert.equal(config.authorization.mode, 'Webhook');
  assert.equal(config.readOnlyPort, 0);
  assert.equal(config.failCgroupV1, false);
  assert.equal(config.syncFrequencyMs, 60_000);
  assert.equal(config.evictionHard['memory.available'], '100Mi');
  assert.equal(flags.rootDir, '/var/lib/kubelet');
  assert.deepEqual(warnings, []);
  assert.deepEqual(configFiles, []);
});

test('opens insecure servers only if configured, and with a warning', async () => {
  const text = `${header}readOnlyPort: 10255\nauthentication: {anonymous: {enabled: true}}\nauthorization: {mode: AlwaysAllow}\n`;
  const { config, warnings } = await load({ '/etc/k.yaml': text });
  assert.equal(config.authentication.anonymous.enabled, true);
  assert.deepEqual(
    warnings.map(({ source, line, field }) => [source, line, field]),
    [
      ['/etc/k.yaml', 4, 'authentication.anonymous.enabled'],
      ['/etc/k.yaml', 5, 'authorization.mode'],
      ['/etc/k.yaml', 3, 'readOnlyPort'],
    ],
  );
});

test('overrides defaults by the file, the file by drop-ins, and all of them by flags', async () => {
  const loaded = await load(
    {
      '/etc/k.yaml': `${header}maxPods: 1\nport: 1\nhealthzPort: 1\n`,
      '/etc/d/10.conf': `${header}port: 2\nhealthzPort: 2\n`,
      '/etc/d/20.conf': `${header}healthzPort: 3\noomScoreAdj: 3\n`,
    },
    '--config-dir=/etc/d',
    '--oom-score-adj=4',
  );
  const { config } = loaded;
  assert.deepEqual([config.maxPods, config.port, config.healthzPort, config.oomScoreAdj], [1, 2, 3, 4]);
  assert.equal(origin(loaded, 'maxPods'), '/etc/k.yaml:3');
  assert.equal(origin(loaded, 'port'), '/etc/d/10.conf:3');
  assert.equal(origin(loaded, 'healthzPort'), '/etc/d/20.conf:3');
  assert.equal(origin(loaded, 'oomScoreAdj'), '--oom-score-adj');
  assert.equal(origin(loaded, 'podPidsLimit'), 'default');
  assert.deepEqual(loaded.configFiles, ['/etc/k.yaml', '/etc/d/10.conf', '/etc/d/20.conf']);
});

test('merges maps of drop-ins, replaces lists, and restores the default for null', async () => {
  const loaded = await load(
    {
      '/etc/k.yaml':
        `${header}clusterDNS: [1.1.1.1, 2.2.2.2]\nmaxPods: 7\nsystemReserved: {cpu: 1, memory: 1Gi}\n`.replace(
          'cpu: 1,',
          'cpu: "1",',
        ),
      '/etc/d/a.conf': `${header}clusterDNS: [3.3.3.3]\nmaxPods: null\nsystemReserved: {memory: 2Gi, pid: "5"}\n`,
      '/etc/d/b.conf': `${header}systemReserved: {pid: null}\nauthentication: {webhook: {cacheTTL: 7s}}\n`,
    },
    '--config-dir=/etc/d',
  );
  assert.deepEqual(loaded.config.clusterDNS, ['3.3.3.3']);
  assert.equal(loaded.config.maxPods, 110);
  assert.deepEqual(loaded.config.systemReserved, { cpu: '1', memory: '2Gi' });
  assert.deepEqual(loaded.config.authentication.webhook, { enabled: true, cacheTTLMs: 7000 });
  assert.equal(origin(loaded, 'systemReserved[cpu]'), '/etc/k.yaml:5');
  assert.equal(origin(loaded, 'systemReserved[memory]'), '/etc/d/a.conf:5');
  assert.equal(origin(loaded, 'clusterDNS[0]'), '/etc/d/a.conf:3');
});

test('finds drop-ins named *.conf in all subdirectories, sorted by name', async () => {
  const { config, configFiles, warnings } = await load(
    {
      '/etc/d/10-a.conf': `${header}maxPods: 1\n`,
      '/etc/d/20-dir/z.conf': `${header}maxPods: 2\n`,
      '/etc/d/20-dir/a.conf': `${header}maxPods: 3\n`,
      '/etc/d/30.conf': `${header}port: 1234\n`,
      '/etc/d/40.yaml': `${header}maxPods: 4\n`,
      '/etc/d/50.json': '{}',
      '/etc/d/readme.txt': 'x',
      '/etc/d/.hidden.yml': 'x',
    },
    '--config-dir=/etc/d',
  );
  assert.equal(config.maxPods, 2);
  assert.deepEqual(configFiles, [
    '/etc/d/10-a.conf',
    '/etc/d/20-dir/a.conf',
    '/etc/d/20-dir/z.conf',
    '/etc/d/30.conf',
  ]);
  assert.deepEqual(
    warnings.map(({ source }) => source),
    ['/etc/d/.hidden.yml', '/etc/d/40.yaml', '/etc/d/50.json'],
  );
});

test('overrides single feature gates by flags', async () => {
  const text = `${header}featureGates: {MemoryQoS: true, ContainerCheckpoint: false}\n`;
  const loaded = await load(
    { '/etc/k.yaml': text },
    '--feature-gates=ContainerCheckpoint=true,QOSReserved=true',
  );
  assert.deepEqual(loaded.config.featureGates, {
    MemoryQoS: true,
    ContainerCheckpoint: true,
    QOSReserved: true,
  });
  assert.equal(loaded.gates.enabled('MemoryQoS'), true);
  assert.equal(loaded.gates.enabled('ContainerCheckpoint'), true);
  assert.equal(origin(loaded, 'featureGates[MemoryQoS]'), '/etc/k.yaml:3');
  assert.equal(origin(loaded, 'featureGates[ContainerCheckpoint]'), '--feature-gates');
});

test('replaces a map of a file completely by the map of a flag, except for feature gates', async () => {
  const text = `${header}evictionHard: {memory.available: 1Gi, pid.available: "10"}\n`;
  const { config } = await load({ '/etc/k.yaml': text }, '--eviction-hard=nodefs.available<5%');
  assert.deepEqual(config.evictionHard, { 'nodefs.available': '5%' });
});

test('resolves relative paths against the directory of their file', async () => {
  const file = `${header}staticPodPath: pods\ntlsCertFile: ../c.pem\ntlsPrivateKeyFile: /k.pem\nresolvConf: ""\n`;
  const dropIn = `${header}authentication: {x509: {clientCAFile: ca.pem}}\npodLogsDir: logs\nvolumePluginDir: v/\n`;
  const { config, flags } = await load(
    { '/etc/k.yaml': file, '/etc/d/a.conf': dropIn },
    '--config-dir=/etc/d',
    '--kubeconfig=k.conf',
  );
  assert.equal(config.staticPodPath, '/etc/pods');
  assert.equal(config.tlsCertFile, '/c.pem');
  assert.equal(config.tlsPrivateKeyFile, '/k.pem');
  assert.equal(config.resolvConf, '');
  assert.equal(config.authentication.x509.clientCAFile, '/etc/d/ca.pem');
  assert.equal(config.podLogsDir, '/etc/d/logs');
  assert.equal(config.volumePluginDir, '/etc/d/v/');
  assert.equal(flags.kubeconfig, '/work/k.conf');
});

test('treats a zero as the default in a file and as a value on the command line', async () => {
  const zeros = `${header}syncFrequency: 0s\nport: 0\nmaxPods: 0\naddress: ""\nstreamingConnectionIdleTimeout: 0s\n`;
  const fromFile = await load({ '/etc/k.yaml': zeros });
  assert.equal(fromFile.config.syncFrequencyMs, 60_000);
  assert.equal(fromFile.config.port, 10250);
  assert.equal(fromFile.config.maxPods, 110);
  assert.equal(fromFile.config.address, '0.0.0.0');
  assert.equal(fromFile.config.streamingConnectionIdleTimeoutMs, 4 * 3_600_000);
  assert.equal(origin(fromFile, 'maxPods'), 'default');
  const fromFlags = await load({}, '--streaming-connection-idle-timeout=0', '--max-pods=0');
  assert.equal(fromFlags.config.streamingConnectionIdleTimeoutMs, 0);
  assert.equal(fromFlags.config.maxPods, 0);
  await assert.rejects(
    load({}, '--sync-frequency=0'),
    /--sync-frequency: syncFrequency: must be 1ms or longer/,
  );
});

test('treats a zero as a value in fields where it has a meaning', async () => {
  const text = `${header}healthzPort: 0\nregistryPullQPS: 0\nenableServer: false\nnodeStatusMaxImages: 0\nenforceNodeAllocatable: []\nevictionHard: {}\n`;
  const { config } = await load({ '/etc/k.yaml': text });
  assert.deepEqual(
    [config.healthzPort, config.registryPullQPS, config.enableServer, config.nodeStatusMaxImages],
    [0, 0, false, 0],
  );
  assert.deepEqual(config.enforceNodeAllocatable, []);
  assert.deepEqual(config.evictionHard, {});
});

test('derives the status report frequency from an update frequency in a file, but not from one set by a flag', async () => {
  const both = `${header}nodeStatusUpdateFrequency: 4s\nnodeStatusReportFrequency: 1m\n`;
  const one = await load({ '/etc/k.yaml': `${header}nodeStatusUpdateFrequency: 4s\n` });
  assert.equal(one.config.nodeStatusReportFrequencyMs, 4000);
  assert.match(origin(one, 'nodeStatusReportFrequency'), /^default, as nodeStatusUpdateFrequency/);
  assert.equal((await load({ '/etc/k.yaml': both })).config.nodeStatusReportFrequencyMs, 60_000);
  assert.equal(
    (await load({}, '--node-status-update-frequency=4s')).config.nodeStatusReportFrequencyMs,
    300_000,
  );
});

test('enables parallel image pulls by the field maxParallelImagePulls alone', async () => {
  const loadPulls = (text: string) => load({ '/etc/k.yaml': `${header}${text}` });
  assert.equal((await loadPulls('maxParallelImagePulls: 2\n')).config.serializeImagePulls, false);
  assert.equal((await loadPulls('maxParallelImagePulls: 1\n')).config.serializeImagePulls, true);
  await assert.rejects(
    loadPulls('maxParallelImagePulls: 2\nserializeImagePulls: true\n'),
    /maxParallelImagePulls: must be 1/,
  );
});

test('drops the other eviction defaults when some thresholds are set, unless mergeDefaultEvictionSettings is true', async () => {
  const partial = 'evictionHard: {memory.available: 1Gi}\n';
  const dropped = await load({ '/etc/k.yaml': `${header}${partial}` });
  assert.deepEqual(dropped.config.evictionHard, { 'memory.available': '1Gi' });
  const merged = await load({ '/etc/k.yaml': `${header}${partial}mergeDefaultEvictionSettings: true\n` });
  assert.equal(merged.config.evictionHard['memory.available'], '1Gi');
  assert.equal(merged.config.evictionHard['imagefs.inodesFree'], '5%');
  assert.match(origin(merged, 'evictionHard[imagefs.inodesFree]'), /mergeDefaultEvictionSettings/);
});

test('derives defaults that depend on a feature gate', async () => {
  const text = `${header}featureGates: {KubeletCrashLoopBackOffMax: false, KubeletEnsureSecretPulledImages: false}\n`;
  const { config } = await load({ '/etc/k.yaml': text });
  assert.equal(config.crashLoopBackOff.maxContainerRestartPeriodMs, undefined);
  assert.equal(config.imagePullCredentialsVerificationPolicy, '');
  const usual = await load({});
  assert.equal(usual.config.crashLoopBackOff.maxContainerRestartPeriodMs, 300_000);
  assert.equal(usual.config.imagePullCredentialsVerificationPolicy, 'NeverVerifyPreloadedImages');
});

test('treats any negative PID limit as unlimited', async () => {
  assert.equal((await load({ '/etc/k.yaml': `${header}podPidsLimit: -7\n` })).config.podPidsLimit, -1);
});

/**
 * A configuration as cluster installers write it, with a zero for every field that they do not set.
 */
const installerFile = `apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
  webhook:
    cacheAuthorizedTTL: 0s
    cacheUnauthorizedTTL: 0s
cgroupDriver: systemd
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
containerRuntimeEndpoint: ""
cpuManagerReconcilePeriod: 0s
crashLoopBackOff: {}
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
kind: KubeletConfiguration
logging:
  flushFrequency: 0
  options:
    json:
      infoBufferSize: "0"
    text:
      infoBufferSize: "0"
  verbosity: 0
memorySwap: {}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
resolvConf: /run/systemd/resolve/resolv.conf
rotateCertificates: true
runtimeRequestTimeout: 0s
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
`;

test('loads a file written by cluster installers', async () => {
  const { config, warnings } = await load(
    { '/etc/k.yaml': installerFile },
    '--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf',
    '--kubeconfig=/etc/kubernetes/kubelet.conf',
    '--container-runtime-endpoint=unix:///var/run/containerd/containerd.sock',
  );
  assert.equal(config.cgroupDriver, 'systemd');
  assert.equal(config.rotateCertificates, true);
  assert.equal(config.authentication.webhook.cacheTTLMs, 120_000);
  assert.equal(config.streamingConnectionIdleTimeoutMs, 4 * 3_600_000);
  assert.equal(config.logging.flushFrequencyMs, 5000);
  assert.equal(config.nodeStatusReportFrequencyMs, 300_000);
  assert.equal(config.containerRuntimeEndpoint, 'unix:///var/run/containerd/containerd.sock');
  assert.deepEqual(warnings.map(describeFinding), [
    '--container-runtime-endpoint: is deprecated: set containerRuntimeEndpoint in a file',
  ]);
});

for (const [way, auth, warned] of [
  [
    'in a cluster',
    'authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: /cp/pki/ca.crt}}\nauthorization: {mode: Webhook}\n',
    1,
  ],
  [
    'alone',
    'authentication: {anonymous: {enabled: false}, webhook: {enabled: false}}\nauthorization: {mode: AlwaysAllow}\n',
    2,
  ],
] as const) {
  test(`loads the configuration of a test node ${way}`, async () => {
    const text = `${header}cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix:///run/test/containerd.sock
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
staticPodPath: /n/manifests
port: 10250
readOnlyPort: 10255
maxPods: 250

${auth}`;
    const loaded = await load(
      { '/etc/k.yaml': text },
      '--hostname-override',
      'node-a',
      '--root-dir',
      '/n/root',
    );
    assert.equal(loaded.config.maxPods, 250);
    assert.equal(loaded.config.readOnlyPort, 10255);
    assert.equal(loaded.flags.hostnameOverride, 'node-a');
    assert.equal(loaded.warnings.length, warned);
  });
}

test('accepts a JSON file', async () => {
  const text = JSON.stringify(
    { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', maxPods: 9 },
    null,
    '\t',
  );
  assert.equal((await load({ '/etc/k.yaml': text })).config.maxPods, 9);
});

test('reports every unreadable file by name', async () => {
  await assert.rejects(load({}, '--config=/nope.yaml', '--config-dir=/nowhere'), (error) => {
    assert.ok(error instanceof KubelingError);
    assert.match(error.message, /\/nope\.yaml: cannot be read: no such file/);
    assert.match(error.message, /\/nowhere: cannot be read/);
    return true;
  });
});

test('stops reading when aborted', async () => {
  const reason = new KubelingError('CANCELLED', 'enough');
  const deps = { files: hostFiles(), cwd: '/' };
  await assert.rejects(
    loadConfig(['--config=/etc/hostname'], deps, AbortSignal.abort(reason)),
    (error) => error === reason,
  );
});

test('reads the files of the host, and rejects large ones', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'kubeling-config-'));
  try {
    await writeFile(join(directory, 'k.yaml'), `${header}maxPods: 5\nstaticPodPath: pods\n`);
    await mkdir(join(directory, 'd', 'sub'), { recursive: true });
    await writeFile(join(directory, 'd', 'sub', 'a.conf'), `${header}maxPods: 6\n`);
    const deps = { files: hostFiles(), cwd: directory };
    const { config } = await loadConfig(['--config=k.yaml', '--config-dir', 'd'], deps);
    assert.equal(config.maxPods, 6);
    assert.equal(config.staticPodPath, join(directory, 'pods'));
    await writeFile(join(directory, 'big.yaml'), '#'.repeat(5 * 1024 * 1024));
    await assert.rejects(loadConfig(['--config=big.yaml'], deps), /must not be larger than/);
    await assert.rejects(loadConfig(['--config=d'], deps), /cannot be read/);
  } finally {
    await rm(directory, { recursive: true });
  }
});
