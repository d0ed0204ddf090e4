import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { MemoryCertificateFiles } from '../../test/fakes/memory-certificate-files.ts';
import { SigningApi, TestAuthority } from '../../test/fakes/signing-api.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { apiError } from '../api/index.ts';
import type { NodeAddress } from '../kinds/index.ts';
import {
  type CollectedLogs,
  collectLogs,
  KubelingError,
  MetricRegistry,
  seededRandom,
} from '../lib/index.ts';
import { type KeyPair, keyPem, newEcKey, readCertificateRequest } from '../protocols/x509/index.ts';
import type { CertificateManager } from './certificate-manager.ts';
import { guardCredentials, type KubeconfigCertificate, openClientCertificate } from './client-certificate.ts';
import { clientCertificateMetrics, exposeTimeToLive, serverCertificateMetrics } from './metrics.ts';
import { clientIdentity } from './node-identity.ts';
import { openServingCertificate } from './serving-certificate.ts';

const minute = 60_000;
const day = 86_400_000;

let clock: VirtualClock;
let files: MemoryCertificateFiles;
let logs: CollectedLogs;
let api: SigningApi;
let registry: MetricRegistry;
let stop: AbortController;

beforeEach(() => {
  clock = new VirtualClock();
  files = new MemoryCertificateFiles();
  logs = collectLogs(clock);
  api = new SigningApi({ clock });
  registry = new MetricRegistry({ onError: assert.ifError });
  stop = new AbortController();
});

const deps = (seed = 1) => ({ files, clock, random: seededRandom(seed), log: logs.logger });

async function client(kubeconfig?: KubeconfigCertificate, seed = 1): Promise<CertificateManager> {
  const observer = clientCertificateMetrics(registry);
  const settings = { nodeName: 'n1', certDirectory: '/pki', kubeconfig, api: () => api };
  return await openClientCertificate(settings, { ...deps(seed), observer });
}

/** Runs the certificate manager until the test ends, and returns the certificates it reported. */
function start(manager: {
  run(signal: AbortSignal): Promise<never>;
  onRotated: CertificateManager['onRotated'];
}) {
  const rotated: KeyPair[] = [];
  manager.onRotated((pair) => rotated.push(pair));
  manager.run(stop.signal).catch(() => {});
  return rotated;
}

async function metric(name: string): Promise<string | undefined> {
  const text = await registry.expose(stop.signal);
  return text
    .split('\n')
    .find((line) => line.startsWith(`${name} `))
    ?.slice(name.length + 1);
}

async function stopAll(): Promise<void> {
  stop.abort(new Error('over'));
  await clock.advance(0);
  assert.equal(clock.pendingTimers, 0);
  assert.equal(api.watching, 0);
}

describe('client certificate manager', () => {
  test('immediately requests a certificate for the node, and watches only that request', async () => {
    const manager = await client();
    const rotated = start(manager);
    await clock.advance(0);
    const [csr] = api.created;
    assert.ok(csr);
    assert.equal(csr.kind, 'CertificateSigningRequest');
    assert.equal(csr.apiVersion, 'certificates.k8s.io/v1');
    assert.match(csr.metadata.name, /^csr-/);
    assert.deepEqual(Object.keys(csr.spec).sort(), ['request', 'signerName', 'usages']);
    assert.equal(csr.spec.signerName, 'kubernetes.io/kube-apiserver-client-kubelet');
    assert.deepEqual(csr.spec.usages, ['digital signature', 'client auth']);
    const request = readCertificateRequest(Buffer.from(csr.spec.request, 'base64').toString());
    assert.deepEqual(request.identity, clientIdentity('n1'));
    assert.equal(request.publicKey.asymmetricKeyDetails?.namedCurve, 'prime256v1');
    assert.match(
      manager.problem() ?? '',
      /there is no client certificate; .*csr-1 has been pending since 2026-01-01T00:00:00Z.*kubectl certificate approve csr-1/,
    );
    api.condition('csr-1', 'Approved');
    await clock.advance(0);
    assert.match(manager.describe(), /csr-1 .* is approved and waits for its signer/);
    api.approve('csr-1');
    await clock.advance(0);
    assert.equal(rotated.length, 1);
    assert.equal(manager.current(), rotated[0]);
    assert.equal(manager.problem(), undefined);
    assert.deepEqual(files.paths(), [
      '/pki/kubelet-client-2026-01-01-00-00-00.pem',
      '/pki/kubelet-client-current.pem',
    ]);
    await stopAll();
  });

  test('renews a certificate between 70 and 90 percent of its lifetime, at a different time on each node', async () => {
    api.policy = 'issue';
    const moments = new Set<number>();
    for (let seed = 1; seed <= 8; seed++) {
      files = new MemoryCertificateFiles();
      registry = new MetricRegistry({ onError: assert.ifError });
      const rotated = start(await client(undefined, seed));
      await clock.advance(0);
      const startMs = clock.now();
      assert.ok(await clock.advanceUntil(() => rotated.length === 2, day));
      const share = (clock.now() - startMs) / day;
      assert.ok(share >= 0.7 && share <= 0.9, `at ${share}`);
      moments.add(Math.round(share * 1_000));
      await stopAll();
      stop = new AbortController();
    }
    assert.ok(moments.size > 4);
  });

  test('rotates the certificate for three lifetimes with at most two files on disk', async () => {
    api.policy = 'issue';
    api.lifeMs = 10 * minute;
    const manager = await client();
    const rotated = start(manager);
    await clock.advance(40 * minute);
    assert.ok(rotated.length >= 5 && rotated.length <= 7, `${rotated.length}`);
    assert.ok(manager.current());
    assert.equal(files.paths().length, 3);
    await stopAll();
  });

  test('loads the stored certificate after a restart, and replaces it immediately if it is for another node', async () => {
    api.policy = 'issue';
    start(await client());
    await clock.advance(0);
    await stopAll();
    stop = new AbortController();
    registry = new MetricRegistry({ onError: assert.ifError });
    start(await client());
    await clock.advance(minute);
    assert.equal(api.created.length, 1);
    const other = await openClientCertificate(
      { nodeName: 'n2', certDirectory: '/pki', kubeconfig: undefined, api: () => api },
      deps(),
    );
    start(other);
    await clock.advance(0);
    assert.equal(api.created.length, 2);
    assert.equal(other.current()?.leaf.commonName, 'system:node:n2');
    await stopAll();
  });

  test('retries failed requests after 2, 4, 8 and 16 seconds and then every 32 seconds, and counts the failed requests', async () => {
    const manager = await client();
    start(manager);
    const refusal = () => apiError({ what: 'create csr', status: 403, apiStatus: { message: 'no' } });
    api.failures.create.push(...Array.from({ length: 20 }, refusal));
    await clock.advance(0);
    const gaps: number[] = [];
    for (let tries = 1; tries <= 7; tries++) {
      const beforeMs = clock.monotonicMs();
      await clock.advanceUntil(() => api.calls.length > tries, 5 * minute);
      gaps.push((clock.monotonicMs() - beforeMs) / 1_000);
    }
    for (const [index, least] of [2, 4, 8, 16, 32, 32, 32].entries()) {
      const gap = gaps[index] ?? 0;
      assert.ok(gap >= least && gap <= least * 1.1, `${gap} should be ${least}`);
    }
    assert.equal(await metric('kubelet_certificate_manager_client_expiration_renew_errors'), '8');
    assert.match(manager.problem() ?? '', /failed 8 times: Cannot create csr: no/);
    assert.equal(manager.serverResponds, true);
    await stopAll();
  });

  test('creates another request after one was denied, failed, deleted or replaced', async () => {
    start(await client());
    await clock.advance(0);
    const ends = [
      (name: string) => api.condition(name, 'Denied', 'unknown node'),
      (name: string) => api.condition(name, 'Failed', 'no key'),
      (name: string) => api.delete(name),
      (name: string) => api.replaceByAnother(name),
    ];
    for (const end of ends) {
      const count = api.created.length;
      end(api.created.at(-1)?.metadata.name ?? '');
      assert.ok(await clock.advanceUntil(() => api.created.length > count, minute));
    }
    const text = [...logs.records].map(({ error }) => String(error?.['err'])).join('\n');
    assert.match(text, /was denied: Tested: unknown node/);
    assert.match(text, /the signer failed: Tested: no key/);
    assert.match(text, /it was deleted/);
    assert.match(text, /it was replaced by another one/);
    await stopAll();
  });

  test('requests one new certificate after the clock was set back', async () => {
    api = new SigningApi({ clock, policy: 'issue' });
    clock.jumpWall(400 * day);
    const rotated = start(await client());
    await clock.advance(minute);
    clock.jumpWall(-400 * day);
    await clock.advance(10 * minute);
    assert.equal(rotated.length, 2);
    assert.ok((rotated[1]?.leaf.notBeforeMs ?? 0) <= clock.now());
    await clock.advance(60 * minute);
    assert.equal(rotated.length, 2);
    await stopAll();
  });

  test('replaces a request that is not signed within 15 minutes', async () => {
    start(await client());
    await clock.advance(15 * minute - 1);
    assert.equal(api.created.length, 1);
    await clock.advance(10_000);
    assert.equal(api.created.length, 2);
    await stopAll();
  });

  test('restarts a watch that ended or failed', async () => {
    const rotated = start(await client());
    await clock.advance(0);
    api.endWatches();
    await clock.advance(5_000);
    api.failures.list.push(apiError({ what: 'list', status: 500, apiStatus: {} }));
    api.failures.watch.push(apiError({ what: 'watch', status: 410, apiStatus: {} }));
    api.endWatches();
    await clock.advance(10_000);
    api.endWatches();
    api.approve('csr-1');
    await clock.advance(5_000);
    assert.equal(rotated.length, 1);
    assert.equal(api.created.length, 1);
    await stopAll();
  });

  test('uses v1beta1 of the certificates API with a server that has no v1', async () => {
    api = new SigningApi({ clock, version: 'v1beta1', policy: 'issue' });
    const rotated = start(await client());
    await clock.advance(0);
    assert.equal(rotated.length, 1);
    assert.deepEqual(api.calls.slice(0, 2), ['create v1', 'create v1beta1']);
    await stopAll();
  });

  test('waits for the same request with the same key after a restart', async () => {
    start(await client());
    await clock.advance(5 * minute);
    await stopAll();
    stop = new AbortController();
    registry = new MetricRegistry({ onError: assert.ifError });
    const rotated = start(await client());
    await clock.advance(minute);
    api.approve('csr-1');
    await clock.advance(0);
    assert.equal(api.created.length, 1);
    assert.equal(rotated.length, 1);
    assert.ok(!files.paths().includes('/pki/kubelet-client-request.json'));
    await stopAll();
  });

  test('rejects a certificate that was signed for another key', async () => {
    const manager = await client();
    start(manager);
    await clock.advance(0);
    const pem = api.authority.issue(clientIdentity('n1'), newEcKey(), { fromMs: 0, toMs: clock.now() + day });
    api.put('csr-1', {
      conditions: [{ type: 'Approved' }],
      certificate: Buffer.from(pem).toString('base64'),
    });
    await clock.advance(0);
    assert.equal(manager.current(), undefined);
    assert.match(manager.problem() ?? '', /must fit its key/);
    await stopAll();
  });

  test('uses a certificate that lacks requested names, without requesting it repeatedly', async () => {
    api.policy = 'issue';
    api.shape = (identity) => ({ ...identity, organizations: [] });
    const manager = await client();
    start(manager);
    await clock.advance(30 * minute);
    assert.equal(api.created.length, 1);
    assert.ok(manager.current());
    await stopAll();
  });

  test('rejects a certificate that is already expired when issued, and mentions the clocks', async () => {
    api.policy = 'issue';
    api.lifeMs = -minute;
    const manager = await client();
    start(manager);
    await clock.advance(100_000);
    assert.ok(api.created.length <= 7, `${api.created.length}`);
    assert.match(manager.problem() ?? '', /expired 20.* check the clocks/);
    await stopAll();
  });

  test('requests at most every ten seconds when issued certificates are almost expired', async () => {
    api.policy = 'issue';
    api.lifeMs = 100;
    start(await client());
    await clock.advance(minute);
    assert.ok(api.created.length <= 7, `${api.created.length}`);
    await stopAll();
  });

  test('reuses the signed request after the certificate could not be stored', async () => {
    api.policy = 'issue';
    const replace = files.replace.bind(files);
    files.replace = async () => {
      throw new KubelingError('FILE_WRITE', 'Cannot write: ENOSPC');
    };
    const manager = await client();
    const rotated = start(manager);
    await clock.advance(minute);
    assert.match(manager.problem() ?? '', /ENOSPC/);
    files.replace = replace;
    await clock.advance(minute);
    assert.equal(rotated.length, 1);
    assert.equal(api.created.length, 1);
    await stopAll();
  });

  test('requests no certificate while a regular file is at the path of the link to the current certificate', async () => {
    await files.replace('/pki/kubelet-client-current.pem', 'something', 0o600);
    const manager = await client();
    start(manager);
    await clock.advance(minute);
    assert.equal(api.created.length, 0);
    assert.match(manager.problem() ?? '', /must be a symbolic link: it is a file/);
    await stopAll();
  });

  test('reports the remaining lifetime as a metric, infinite without a certificate', async () => {
    api.policy = 'issue';
    const manager = await client();
    using _ttl = exposeTimeToLive(registry, 'client', { clock, held: () => manager.held() });
    assert.equal(await metric('kubelet_certificate_manager_client_ttl_seconds'), '+Inf');
    start(manager);
    await clock.advance(10_500);
    assert.equal(await metric('kubelet_certificate_manager_client_ttl_seconds'), '86389');
    await stopAll();
    await clock.advance(2 * day);
    assert.equal(manager.current(), undefined);
    stop = new AbortController();
    assert.equal(await metric('kubelet_certificate_manager_client_ttl_seconds'), '-86410');
  });
});

describe('certificate in the kubeconfig', () => {
  function written(fromMs: number, toMs: number): KubeconfigCertificate {
    const key = newEcKey();
    const authority = new TestAuthority(clock.now());
    const certificate = authority.issue(clientIdentity('n1'), key, { fromMs, toMs });
    return { kind: 'inline', certificate, key: keyPem(key), from: 'client-certificate-data of /k' };
  }

  test('stores, uses and immediately replaces the certificate embedded in the kubeconfig', async () => {
    const manager = await client(written(clock.now() - day, clock.now() + 300 * day));
    assert.ok(manager.current());
    assert.equal(await files.kindAt('/pki/kubelet-client-current.pem'), 'link');
    start(manager);
    await clock.advance(0);
    assert.equal(api.created.length, 1);
    await stopAll();
  });

  test('uses the newest valid certificate of the kubeconfig and the store', async () => {
    api.policy = 'issue';
    const rotated = start(await client());
    await clock.advance(0);
    await stopAll();
    const open = async (kubeconfig: KubeconfigCertificate) => {
      registry = new MetricRegistry({ onError: assert.ifError });
      return (await client(kubeconfig)).current()?.leaf.fingerprint;
    };
    const stored = rotated[0]?.leaf.fingerprint;
    assert.equal(await open(written(clock.now() - day, clock.now() + 300 * day)), stored);
    assert.equal(await open(written(clock.now() - 2 * day, clock.now() - day)), stored);
    assert.notEqual(await open(written(clock.now() + 1_000, clock.now() + 300 * day)), stored);
  });

  test('ignores a certificate that cannot be parsed', async () => {
    const manager = await client({
      kind: 'inline',
      certificate: 'x',
      key: 'y',
      from: 'client-certificate-data of /k',
    });
    assert.equal(manager.current(), undefined);
    assert.match(
      [...logs.records].map(({ error }) => String(error?.['err'])).join(),
      /client-certificate-data of \/k/,
    );
  });
});

describe('exit of the kubelet when the node has no valid client certificate', () => {
  test('exits after five minutes without a certificate if the reachable server issues none', async () => {
    const manager = await client();
    api.failures.create.push(
      ...Array.from({ length: 99 }, () => apiError({ what: 'create', status: 401, apiStatus: {} })),
    );
    start(manager);
    const guard = guardCredentials({ certificate: manager, clock, log: logs.logger }, stop.signal);
    guard.catch(() => {});
    await clock.advance(5 * minute - 1_000);
    assert.equal(await Promise.race([guard, Promise.resolve('runs')]), 'runs');
    await clock.advance(15_000);
    await assert.rejects(guard, { code: 'CERTIFICATE_LOST', message: /there is no client certificate/ });
    await stopAll();
  });

  test('does not exit while a signing request is pending or the server is unreachable', async () => {
    const manager = await client();
    start(manager);
    const guard = guardCredentials({ certificate: manager, clock, log: logs.logger }, stop.signal);
    guard.catch(() => {});
    await clock.advance(14 * minute);
    api.failures.create.push(
      ...Array.from({ length: 99 }, () => apiError({ what: 'create', status: 503, apiStatus: {} })),
    );
    await clock.advance(20 * minute);
    assert.equal(await Promise.race([guard, Promise.resolve('runs')]), 'runs');
    await stopAll();
  });

  test('exits with the file and the expiry date when the certificate expired and none is issued', async () => {
    api.policy = 'issue';
    const manager = await client();
    start(manager);
    await clock.advance(0);
    api.failures.create.push(
      ...Array.from({ length: 2_000 }, () => apiError({ what: 'create', status: 403, apiStatus: {} })),
    );
    const guard = guardCredentials({ certificate: manager, clock, log: logs.logger }, stop.signal);
    guard.catch(() => {});
    await clock.advance(day + 20_000);
    await assert.rejects(guard, {
      code: 'CERTIFICATE_LOST',
      message: /kubelet-client-2026-01-01-00-00-00\.pem expired 2026-01-02T00:00:00Z/,
    });
    await stopAll();
  });
});

describe('serving certificate issued by the cluster', () => {
  let addresses: NodeAddress[];
  beforeEach(() => {
    addresses = [];
  });

  const open = async () =>
    await openServingCertificate(
      {
        source: { kind: 'cluster', api, configured: undefined },
        nodeName: 'n1',
        certDirectory: '/pki',
        addresses: () => addresses,
      },
      { ...deps(), observer: serverCertificateMetrics(registry) },
    );

  const askedFor = (index: number) =>
    readCertificateRequest(Buffer.from(api.created[index]?.spec.request ?? '', 'base64').toString()).identity;

  test('requests no serving certificate without an IP address, and reports the reason', async () => {
    addresses = [{ type: 'Hostname', address: 'n1' }];
    const serving = await open();
    start(serving);
    await clock.advance(10 * minute);
    assert.equal(api.created.length, 0);
    assert.match(serving.problem() ?? '', /must have an IP address .*: current addresses are Hostname n1/);
    await stopAll();
  });

  test('requests a serving certificate when the addresses were stable for ten seconds', async () => {
    const serving = await open();
    start(serving);
    addresses = [{ type: 'InternalIP', address: '10.0.0.1' }];
    serving.refresh();
    await clock.advance(9_000);
    addresses = [
      { type: 'InternalIP', address: '10.0.0.1' },
      { type: 'Hostname', address: 'n1' },
      { type: 'ExternalIP', address: '::ffff:192.0.2.1' },
      { type: 'InternalDNS', address: 'n1.internal' },
      { type: 'ExternalDNS', address: '' },
    ];
    serving.refresh();
    await clock.advance(9_999);
    assert.equal(api.created.length, 0);
    await clock.advance(1);
    assert.equal(api.created.length, 1);
    assert.deepEqual(askedFor(0), {
      commonName: 'system:node:n1',
      organizations: ['system:nodes'],
      dnsNames: ['n1', 'n1.internal'],
      ips: ['10.0.0.1', '192.0.2.1'],
    });
    assert.equal(api.created[0]?.spec.signerName, 'kubernetes.io/kubelet-serving');
    assert.deepEqual(api.created[0]?.spec.usages, ['digital signature', 'server auth']);
    api.approve('csr-1');
    await clock.advance(0);
    assert.ok(files.paths().includes('/pki/kubelet-server-current.pem'));
    await stopAll();
  });

  test('requests a new serving certificate when addresses are added, even without a call of refresh(), and none when addresses are removed', async () => {
    api.policy = 'issue';
    addresses = [
      { type: 'InternalIP', address: '10.0.0.1' },
      { type: 'Hostname', address: 'n1' },
    ];
    const rotated = start(await open());
    await clock.advance(11_000);
    assert.equal(rotated.length, 1);
    addresses = [{ type: 'InternalIP', address: '10.0.0.1' }];
    await clock.advance(5 * minute);
    assert.equal(rotated.length, 1);
    addresses = [...addresses, { type: 'InternalIP', address: 'fd00::1' }];
    await clock.advance(25_000);
    assert.equal(rotated.length, 2);
    assert.deepEqual(rotated[1]?.leaf.ips, ['10.0.0.1', 'fd00::1']);
    await stopAll();
  });

  test('replaces a pending request when more addresses are required, with one pending request at a time', async () => {
    addresses = [{ type: 'InternalIP', address: '10.0.0.1' }];
    const serving = await open();
    start(serving);
    await clock.advance(2 * minute);
    assert.equal(api.created.length, 1);
    addresses = [...addresses, { type: 'InternalIP', address: '10.0.0.2' }];
    serving.refresh();
    await clock.advance(9_999);
    assert.equal(api.created.length, 1);
    await clock.advance(1);
    assert.equal(api.created.length, 2);
    assert.equal(api.watching, 1);
    assert.deepEqual(askedFor(1).ips, ['10.0.0.1', '10.0.0.2']);
    assert.equal(await metric('kubelet_server_expiration_renew_errors'), '0');
    await stopAll();
  });

  test('records the lifetime of each replaced certificate', async () => {
    api.policy = 'issue';
    api.lifeMs = 10 * minute;
    addresses = [{ type: 'InternalIP', address: '10.0.0.1' }];
    const rotated = start(await open());
    await clock.advanceUntil(() => rotated.length === 3, day);
    assert.equal(await metric('kubelet_certificate_manager_server_rotation_seconds_count'), '2');
    await stopAll();
  });
});
