import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { memoryConfigFiles } from '../../test/fakes/memory-config-files.ts';
import { durationMs, formatDuration, formatQuantity, readYaml } from '../lib/index.ts';
import { decodeDocument } from './decode.ts';
import { gateSpecs } from './feature-gate-table.ts';
import { FeatureGates } from './feature-gates.ts';
import type { Fields, ValueType } from './fields.ts';
import type { Origins } from './findings.ts';
import { describeFinding } from './findings.ts';
import { loadConfig } from './load.ts';
import { maskSecrets, renderConfig, toWire } from './render.ts';
import { deriveDefaults, resolveFields } from './resolve-fields.ts';
import { type KubeletConfiguration, kubeletConfigurationFields } from './schema.ts';

const header = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const file = `${header}maxPods: 250
clusterDNS:
- 10.96.0.10
registerWithTaints:
- key: a
  effect: NoSchedule
evictionHard:
  memory.available: 5%
staticPodURLHeader: {Authorization: [Bearer hunter2]}
nodeStatusUpdateFrequency: 4s
`;

async function render(...argv: string[]): Promise<readonly string[]> {
  const texts = { '/etc/k.yaml': file, '/etc/d/a.conf': `${header}syncFrequency: 90s\n` };
  const loaded = await loadConfig(['--config=/etc/k.yaml', ...argv], {
    files: memoryConfigFiles(texts),
    cwd: '/',
  });
  return renderConfig(loaded).split('\n');
}

test('prints the origin after every value', async () => {
  const lines = await render('--config-dir=/etc/d', '--port=1234', '--feature-gates=MemoryQoS=true');
  for (const line of [
    'maxPods: 250  # /etc/k.yaml:3',
    'syncFrequency: 1m30s  # /etc/d/a.conf:3',
    'port: 1234  # --port',
    'healthzPort: 10248  # default',
    '- "10.96.0.10"  # /etc/k.yaml:5',
    '- key: a  # /etc/k.yaml:7',
    '  effect: NoSchedule  # /etc/k.yaml:8',
    '  memory.available: "5%"  # /etc/k.yaml:10',
    'nodeStatusReportFrequency: 4s  # default, as nodeStatusUpdateFrequency is set',
    '  MemoryQoS: true  # --feature-gates',
    '    clientCAFile: ""  # default',
    'tlsCipherSuites: []  # default',
    'qosReserved: {}  # default',
  ]) {
    assert.ok(lines.includes(line), line);
  }
});

test('masks secrets in the printed configuration', async () => {
  const lines = await render();
  assert.ok(lines.includes('  - "<masked>"  # /etc/k.yaml:11'));
  assert.doesNotMatch(lines.join('\n'), /hunter2/);
});

test('prints a configuration that can be used as a file', async () => {
  const printed = (await render('--max-pods=7')).join('\n').replace('"<masked>"', 'x');
  const { config } = await loadConfig(['--config=/p.yaml'], {
    files: memoryConfigFiles({ '/p.yaml': printed }),
    cwd: '/',
  });
  assert.equal(config.maxPods, 7);
  assert.deepEqual(config.evictionHard, { 'memory.available': '5%' });
  assert.equal(config.nodeStatusReportFrequencyMs, 4000);
});

const deps = { files: memoryConfigFiles({}), cwd: '/' };

test('writes the defaults of the Go kubelet in wire format, except two that differ intentionally', async () => {
  const { config } = await loadConfig([], deps);
  assert.deepEqual(toWire(config), {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address: '0.0.0.0',
    authentication: { anonymous: { enabled: false }, webhook: { cacheTTL: '2m0s', enabled: true }, x509: {} },
    authorization: { mode: 'Webhook', webhook: { cacheAuthorizedTTL: '5m0s', cacheUnauthorizedTTL: '30s' } },
    cgroupDriver: 'cgroupfs',
    cgroupsPerQOS: true,
    configMapAndSecretChangeDetectionStrategy: 'Watch',
    containerLogMaxFiles: 5,
    containerLogMaxSize: '10Mi',
    containerLogMaxWorkers: 1,
    containerLogMonitorInterval: '10s',
    containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
    contentType: 'application/vnd.kubernetes.protobuf',
    cpuCFSQuota: true,
    cpuCFSQuotaPeriod: '100ms',
    cpuManagerPolicy: 'none',
    cpuManagerReconcilePeriod: '10s',
    crashLoopBackOff: { maxContainerRestartPeriod: '5m0s' },
    enableControllerAttachDetach: true,
    enableDebugFlagsHandler: true,
    enableDebuggingHandlers: true,
    enableProfilingHandler: true,
    enableServer: true,
    enableSystemLogHandler: true,
    enableSystemLogQuery: false,
    enforceNodeAllocatable: ['pods'],
    eventBurst: 100,
    eventRecordQPS: 50,
    evictionHard: {
      'imagefs.available': '15%',
      'imagefs.inodesFree': '5%',
      'memory.available': '100Mi',
      'nodefs.available': '10%',
      'nodefs.inodesFree': '5%',
    },
    evictionPressureTransitionPeriod: '5m0s',
    failCgroupV1: false,
    failSwapOn: true,
    fileCheckFrequency: '20s',
    hairpinMode: 'promiscuous-bridge',
    healthzBindAddress: '127.0.0.1',
    healthzPort: 10248,
    httpCheckFrequency: '20s',
    imageGCHighThresholdPercent: 85,
    imageGCLowThresholdPercent: 80,
    imageMaximumGCAge: '0s',
    imageMinimumGCAge: '2m0s',
    imagePullCredentialsVerificationPolicy: 'NeverVerifyPreloadedImages',
    iptablesDropBit: 15,
    iptablesMasqueradeBit: 14,
    kubeAPIBurst: 100,
    kubeAPIQPS: 50,
    localStorageCapacityIsolation: true,
    logging: {
      flushFrequency: '5s',
      format: 'text',
      options: { json: { infoBufferSize: '0' }, text: { infoBufferSize: '0' } },
      verbosity: 0,
    },
    makeIPTablesUtilChains: true,
    maxOpenFiles: 1000000,
    maxPods: 110,
    memoryManagerPolicy: 'None',
    memoryReservationPolicy: 'None',
    memorySwap: {},
    memoryThrottlingFactor: 0.9,
    mergeDefaultEvictionSettings: false,
    nodeLeaseDurationSeconds: 40,
    nodeStatusMaxImages: 50,
    nodeStatusReportFrequency: '5m0s',
    nodeStatusUpdateFrequency: '10s',
    oomScoreAdj: -999,
    podLogsDir: '/var/log/pods',
    podPidsLimit: -1,
    port: 10250,
    registerNode: true,
    registryBurst: 10,
    registryPullQPS: 5,
    resolvConf: '/etc/resolv.conf',
    runtimeRequestTimeout: '2m0s',
    seccompDefault: false,
    serializeImagePulls: true,
    shutdownGracePeriod: '0s',
    shutdownGracePeriodCriticalPods: '0s',
    streamingConnectionIdleTimeout: '4h0m0s',
    syncFrequency: '1m0s',
    topologyManagerPolicy: 'none',
    topologyManagerScope: 'container',
    volumePluginDir: '/usr/libexec/kubernetes/kubelet-plugins/volume/exec/',
    volumeStatsAggPeriod: '1m0s',
  });
});

/**
 * Sample texts: each text check of the configuration accepts at least one of them. Fields without a
 * check accept any text.
 */
const samples = [
  '',
  '10.0.0.1',
  '::',
  '/a/b',
  'http://a/b',
  'unix:///run/x.sock',
  '1.35',
  '0-3,7',
  '10.0.0.0/8',
  'localhost:4317',
];

function anyText(type: Extract<ValueType, { kind: 'text' }>): fc.Arbitrary<string> {
  if (type.choices !== undefined) return fc.constantFrom(...type.choices);
  const fitting = samples.filter((sample) => type.check?.(sample) === undefined);
  if (type.check !== undefined || type.path !== undefined)
    return fc.constantFrom(...fitting.filter((sample) => type.path === undefined || /^(\/|$)/.test(sample)));
  return fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom('yes', '0644', '1m', 'null', '- a', 'a: b', '#x', ' x ', '\n', '"'),
  );
}

/** Generates any value of a type, in the form in which it appears in a file. */
function anyWire(type: ValueType): fc.Arbitrary<unknown> {
  switch (type.kind) {
    case 'bool':
      return fc.boolean();
    case 'int':
      return fc.oneof(
        fc.integer({ min: Math.max(type.min, -(2 ** 31)), max: Math.min(type.max, 2 ** 31 - 1) }),
        fc.constantFrom(type.min, type.max),
      );
    case 'float':
      return fc.double({ min: type.above, minExcluded: true, max: type.max, noNaN: true });
    case 'text':
      return anyText(type);
    case 'duration': {
      const bounds = { min: (type.min ?? -1_000_000) * 1e6, max: (type.max ?? 100_000_000) * 1e6 };
      return fc.bigInt({ min: BigInt(bounds.min), max: BigInt(bounds.max) }).map(formatDuration);
    }
    case 'quantity':
      return fc
        .bigInt({ min: 0n, max: 2n ** 80n })
        .map((nanos) => formatQuantity({ nanos, format: 'BinarySI' }));
    case 'list':
      return fc.array(anyWire(type.item), { maxLength: 3 });
    case 'map':
      return fc.dictionary(fc.string({ unit: 'grapheme' }), anyWire(type.item), { maxKeys: 3 });
    case 'object':
      return anyFields(type.fields);
  }
}

function anyFields(fields: Fields): fc.Arbitrary<Readonly<Record<string, unknown>>> {
  const entries = Object.entries(fields).map(([name, field]) => [name, anyWire(field.type)] as const);
  return fc.record(Object.fromEntries(entries), { requiredKeys: [] });
}

const anyGates = fc.dictionary(
  fc.constantFrom(...Object.keys(gateSpecs), 'AllAlpha', 'AllBeta'),
  fc.boolean(),
  { maxKeys: 4 },
);
const anyDocument = fc
  .tuple(anyFields(kubeletConfigurationFields), anyGates)
  .map(([fields, featureGates]) => ({ ...fields, featureGates }));

interface Read {
  readonly config: KubeletConfiguration;
  readonly origins: Origins;
}

/**
 * Reads a configuration without validating the rules between fields, which a random file would
 * never satisfy.
 */
async function read(text: string): Promise<Read> {
  const { tree, problems } = await readYaml(text);
  assert.deepEqual(problems, []);
  assert.ok(tree?.kind === 'map');
  const body = { ...tree, entries: tree.entries.filter(({ key }) => key !== 'apiVersion' && key !== 'kind') };
  const decoded = decodeDocument(kubeletConfigurationFields, body, { kind: 'file', path: '/k.yaml' });
  assert.deepEqual(decoded.problems.map(describeFinding), []);
  const { value, origins } = resolveFields(kubeletConfigurationFields, decoded.written);
  const config = value as unknown as KubeletConfiguration;
  return deriveDefaults(config, origins, new FeatureGates(config.featureGates));
}

test('reads back any configuration unchanged after writing it in the wire format', async () => {
  await fc.assert(
    fc.asyncProperty(anyDocument, async (document) => {
      const { config } = await read(JSON.stringify(document));
      const again = await read(JSON.stringify(toWire(config)));
      assert.deepEqual(again.config, config);
      assert.deepEqual(toWire(again.config), toWire(config));
    }),
    { numRuns: 60 },
  );
});

test('preserves any configuration in its printed form', async () => {
  await fc.assert(
    fc.asyncProperty(anyDocument, async (document) => {
      const loaded = await read(JSON.stringify(document));
      const again = await read(renderConfig(loaded));
      assert.deepEqual(again.config, maskSecrets(loaded.config));
    }),
    { numRuns: 60 },
  );
});

test('converts milliseconds to Go durations in files', async () => {
  const { config } = await read(
    'syncFrequency: 1500us\ncpuManagerReconcilePeriod: 1h1s\nlogging: {flushFrequency: 2000000000}\n'.replace(
      '1500us',
      '1500ms',
    ),
  );
  assert.equal(config.syncFrequencyMs, 1500);
  assert.equal(config.cpuManagerReconcilePeriodMs, 3_601_000);
  assert.equal(config.logging.flushFrequencyMs, 2000);
  const wire = toWire(config);
  assert.deepEqual([wire['syncFrequency'], wire['cpuManagerReconcilePeriod']], ['1.5s', '1h0m1s']);
  assert.equal(durationMs(1_500_000_000n), config.syncFrequencyMs);
});

test('writes an explicit empty value, because an omitted field means the default', async () => {
  const { config } = await read('enforceNodeAllocatable: []\nevictionHard: {}\nresolvConf: ""\n');
  const wire = toWire(config);
  assert.deepEqual([wire['enforceNodeAllocatable'], wire['evictionHard'], wire['resolvConf']], [[], {}, '']);
});

test('masks secrets in a copy of the configuration', async () => {
  const { config } = await read(
    'staticPodURLHeader: {A: [s1, s2]}\nstaticPodURL: "https://user:pass@host/p"\n',
  );
  const masked = maskSecrets(config);
  assert.deepEqual(masked.staticPodURLHeader, { A: ['<masked>'] });
  assert.equal(masked.staticPodURL, 'https://<masked>@host/p');
  assert.deepEqual(config.staticPodURLHeader, { A: ['s1', 's2'] });
});
