import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { beforeEach, describe, test } from 'node:test';
import { MemoryCertificateFiles } from '../../test/fakes/memory-certificate-files.ts';
import { TestAuthority } from '../../test/fakes/signing-api.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import type { NodeAddress } from '../kinds/index.ts';
import { type CollectedLogs, collectLogs, MetricRegistry, seededRandom } from '../lib/index.ts';
import { type KeyPair, keyPem, newEcKey } from '../protocols/x509/index.ts';
import { exposeTimeToLive, serverCertificateMetrics } from './metrics.ts';
import type { ServedCertificate } from './serving-certificate.ts';
import { openServingCertificate, type ServingSource, servingSource } from './serving-certificate.ts';

const minute = 60_000;
const day = 86_400_000;
const crt = '/pki/kubelet.crt';
const key = '/pki/kubelet.key';

let clock: VirtualClock;
let files: MemoryCertificateFiles;
let logs: CollectedLogs;
let stop: AbortController;
let addresses: NodeAddress[];

beforeEach(() => {
  clock = new VirtualClock();
  files = new MemoryCertificateFiles();
  logs = collectLogs(clock);
  stop = new AbortController();
  addresses = [{ type: 'InternalIP', address: '10.0.0.1' }];
});

const selfSigned: ServingSource = { kind: 'self-signed', hostname: 'n1', keyKind: 'ec-p256' };
const configured: ServingSource = {
  kind: 'files',
  files: { certificateFile: '/etc/a.crt', keyFile: '/etc/a.key' },
};

const open = (source: ServingSource) =>
  openServingCertificate(
    { source, nodeName: 'n1', certDirectory: '/pki', addresses: () => addresses },
    { files, clock, random: seededRandom(1), log: logs.logger },
  );

function start(certificate: ServedCertificate): KeyPair[] {
  const rotated: KeyPair[] = [];
  certificate.onRotated((pair) => rotated.push(pair));
  certificate.run(stop.signal).catch(() => {});
  return rotated;
}

async function stopAll(): Promise<void> {
  stop.abort(new Error('over'));
  await clock.advance(0);
  assert.equal(clock.pendingTimers, 0);
}

function issued(commonName: string, toMs = clock.now() + day) {
  const privateKey = newEcKey();
  const identity = { commonName, organizations: [], dnsNames: ['n1'], ips: [] };
  const authority = new TestAuthority(clock.now());
  return { certificate: authority.issue(identity, privateKey, { fromMs: 0, toMs }), key: keyPem(privateKey) };
}

async function put(
  at: { certificateFile: string; keyFile: string },
  pair: { certificate: string; key: string },
) {
  await files.replace(at.keyFile, pair.key, 0o600);
  await files.replace(at.certificateFile, pair.certificate, 0o644);
}

describe('selection of the serving certificate', () => {
  const wish = {
    serverTLSBootstrap: false,
    tlsCertFile: '',
    tlsPrivateKeyFile: '',
    api: undefined,
    hostname: 'n1',
    keyKind: 'ec-p256',
  } as const;

  test('requests the serving certificate from the cluster if configured, else uses the configured files, else a self-signed certificate', () => {
    const both = { tlsCertFile: '/a', tlsPrivateKeyFile: '/b' };
    assert.equal(servingSource(wish).kind, 'self-signed');
    assert.equal(servingSource({ ...wish, ...both }).kind, 'files');
    const api = {} as never;
    assert.equal(servingSource({ ...wish, ...both, serverTLSBootstrap: true, api }).kind, 'cluster');
    assert.equal(servingSource({ ...wish, serverTLSBootstrap: true }).kind, 'self-signed');
  });

  test('rejects a configured certificate without a key, and a key without a certificate', () => {
    assert.throws(
      () => servingSource({ ...wish, tlsCertFile: '/a' }),
      /tlsCertFile "\/a" as tlsPrivateKeyFile must be/,
    );
    assert.throws(() => servingSource({ ...wish, tlsPrivateKeyFile: '/b' }), /tlsCertFile must be set too/);
  });
});

describe('self-signed serving certificate', () => {
  test('creates a certificate for the hostname and addresses, valid for a year, with the file modes of the Go kubelet', async () => {
    const serving = await open(selfSigned);
    const read = new X509Certificate((await files.read(crt)) ?? '');
    assert.equal(read.subjectAltName, 'DNS:n1, IP Address:10.0.0.1');
    assert.match(read.subject, /^CN=n1@1767225600$/);
    assert.deepEqual(read.keyUsage, ['1.3.6.1.5.5.7.3.1']);
    assert.equal(read.validToDate.getTime() - read.validFromDate.getTime(), 365 * day);
    assert.deepEqual([files.modeOf(crt), files.modeOf(key)], [0o644, 0o600]);
    assert.equal(serving.problem(), undefined);
    assert.deepEqual(files.paths(), [crt, key]);
  });

  test('creates an RSA key if only RSA ciphers are allowed', async () => {
    const serving = await open({ ...selfSigned, keyKind: 'rsa-2048' });
    assert.match(serving.current()?.keyPem ?? '', /RSA PRIVATE KEY/);
  });

  test('reuses the self-signed certificate after a restart', async () => {
    const before = (await open(selfSigned)).current()?.leaf.fingerprint;
    assert.equal((await open(selfSigned)).current()?.leaf.fingerprint, before);
  });

  test('creates a new certificate at 80 percent of its lifetime', async () => {
    const serving = await open(selfSigned);
    const rotated = start(serving);
    clock.jumpWall(0.8 * 365 * day - 3_600_000 - 2 * minute);
    await clock.advance(minute);
    assert.equal(rotated.length, 0);
    await clock.advance(2 * minute);
    assert.equal(rotated.length, 1);
    assert.equal(serving.current(), rotated[0]);
    await stopAll();
  });

  test('creates a new certificate when new addresses have existed for ten seconds', async () => {
    const serving = await open(selfSigned);
    const rotated = start(serving);
    await clock.advance(minute);
    addresses = [...addresses, { type: 'InternalIP', address: 'fd00::1' }];
    serving.refresh();
    await clock.advance(9_999);
    assert.equal(rotated.length, 0);
    await clock.advance(1_000);
    assert.deepEqual(rotated[0]?.leaf.ips, ['10.0.0.1', 'fd00::1']);
    await clock.advance(10 * minute);
    assert.equal(rotated.length, 1);
    await stopAll();
  });

  test('never replaces a certificate of the administrator', async () => {
    await put({ certificateFile: crt, keyFile: key }, issued('mine', clock.now() + minute));
    const serving = await open(selfSigned);
    const rotated = start(serving);
    await clock.advance(10 * minute);
    assert.equal(rotated.length, 0);
    assert.match(
      serving.problem() ?? '',
      /kubelet\.crt and \/pki\/kubelet\.key expired 2026-01-01T00:01:00Z: replace it/,
    );
    await put({ certificateFile: crt, keyFile: key }, issued('mine again'));
    await clock.advance(500);
    assert.equal(rotated[0]?.leaf.commonName, 'mine again');
    await stopAll();
  });

  test('fails at start, with the remedy, if only one of kubelet.crt and kubelet.key exists', async () => {
    await files.replace(crt, issued('x').certificate, 0o644);
    await assert.rejects(
      open(selfSigned),
      /kubelet\.key must exist too: restore it, or remove \/pki\/kubelet\.crt/,
    );
    await files.remove(crt);
    await files.replace(key, issued('x').key, 0o600);
    await assert.rejects(open(selfSigned), {
      code: 'CERTIFICATE_INVALID',
      message: /kubelet\.crt must exist too/,
    });
  });

  test('fails at start if the certificate files of the administrator are damaged, and replaces damaged files that a kubelet created', async () => {
    await put(
      { certificateFile: crt, keyFile: key },
      { certificate: issued('x').certificate, key: issued('y').key },
    );
    await assert.rejects(open(selfSigned), { code: 'CERTIFICATE_INVALID', message: /must fit its key/ });
    await files.remove(crt);
    await files.remove(key);
    await open(selfSigned);
    await files.replace(key, issued('y').key, 0o600);
    assert.equal((await open(selfSigned)).problem(), undefined);
  });

  test('leaves a complete pair on disk when killed at any step', async () => {
    await open(selfSigned);
    const created = { certificate: (await files.read(crt)) ?? '', key: (await files.read(key)) ?? '' };
    const steps: readonly (readonly [string, string][])[] = [
      [[`${key}.new`, created.key]],
      [
        [`${key}.new`, created.key],
        [`${crt}.new`, created.certificate],
      ],
      [
        [key, created.key],
        [`${crt}.new`, created.certificate],
      ],
    ];
    for (const left of steps) {
      files = new MemoryCertificateFiles();
      for (const [path, text] of left) await files.replace(path, text, 0o600);
      assert.ok((await open(selfSigned)).current());
      assert.deepEqual(files.paths(), [crt, key]);
    }
  });
});

describe('configured serving certificate files', () => {
  const at = { certificateFile: '/etc/a.crt', keyFile: '/etc/a.key' };

  test('fails at start unless the configured files exist and match', async () => {
    await assert.rejects(open(configured), /\/etc\/a\.crt and \/etc\/a\.key must both exist/);
    await put(at, { certificate: issued('x').certificate, key: issued('y').key });
    await assert.rejects(open(configured), /must fit its key/);
  });

  test('reads the configured files again when they change, and every minute', async () => {
    await put(at, issued('one'));
    const serving = await open(configured);
    const rotated = start(serving);
    await clock.advance(0);
    await put(at, issued('two'));
    await clock.advance(500);
    assert.deepEqual(
      rotated.map(({ leaf }) => leaf.commonName),
      ['two'],
    );
    files.watch = () => ({ [Symbol.dispose]: () => {} });
    await stopAll();
    stop = new AbortController();
    const unwatched = start(serving);
    await clock.advance(0);
    await put(at, issued('three'));
    await clock.advance(minute);
    assert.deepEqual(
      unwatched.map(({ leaf }) => leaf.commonName),
      ['three'],
    );
    await stopAll();
  });

  test('keeps using the last valid pair when the files become invalid, and reports the reason in the health check', async () => {
    const good = issued('one');
    await put(at, good);
    const serving = await open(configured);
    const rotated = start(serving);
    await files.replace(at.certificateFile, 'broken', 0o644);
    await clock.advance(3 * minute);
    assert.equal(serving.current()?.leaf.commonName, 'one');
    assert.match(serving.problem() ?? '', /the last valid one is used: .*\/etc\/a\.crt and \/etc\/a\.key/);
    assert.equal([...logs.records].filter(({ severity }) => severity === 'error').length, 1);
    await put(at, good);
    await clock.advance(500);
    assert.equal(serving.problem(), undefined);
    assert.equal(rotated.length, 0);
    await stopAll();
  });

  test('exports the remaining lifetime of the configured certificate', async () => {
    await put(at, issued('one'));
    const serving = await open(configured);
    const registry = new MetricRegistry({ onError: assert.ifError });
    serverCertificateMetrics(registry);
    using _ttl = exposeTimeToLive(registry, 'server', { clock, held: () => serving.held() });
    const text = await registry.expose(stop.signal);
    assert.match(text, /^kubelet_certificate_manager_server_ttl_seconds 86400$/m);
    assert.match(text, /^kubelet_server_expiration_renew_errors 0$/m);
  });
});
