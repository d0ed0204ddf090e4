import assert from 'node:assert/strict';
import { createPrivateKey } from 'node:crypto';
import { beforeEach, describe, test } from 'node:test';
import { MemoryCertificateFiles } from '../../test/fakes/memory-certificate-files.ts';
import { SigningApi } from '../../test/fakes/signing-api.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { apiError } from '../api/index.ts';
import { parseKubeconfig } from '../api/kubeconfig/kubeconfig.ts';
import { type CollectedLogs, collectLogs, seededRandom } from '../lib/index.ts';
import { keyPem, newEcKey, readKeyPair } from '../protocols/x509/index.ts';
import { bootstrapClientCertificate, bootstrapCsrName } from './bootstrap.ts';
import { prepareClientAccess, storedCertificate } from './client-access.ts';
import { kubeconfigCertificate, withClientCertificate } from './kubeconfig.ts';
import { clientIdentity } from './node-identity.ts';

const minute = 60_000;
const day = 86_400_000;
const kubeconfigPath = '/etc/kubernetes/kubelet.conf';
const bootstrapPath = '/etc/kubernetes/bootstrap-kubelet.conf';
const current = '/pki/kubelet-client-current.pem';
const temporary = '/pki/kubelet-client.key.tmp';
const settings = { kubeconfigPath, bootstrapPath, certDirectory: '/pki', nodeName: 'n1' };

let clock: VirtualClock;
let files: MemoryCertificateFiles;
let logs: CollectedLogs;
let api: SigningApi;
let healthy: boolean;
let stop: AbortController;

beforeEach(async () => {
  clock = new VirtualClock();
  files = new MemoryCertificateFiles();
  logs = collectLogs(clock);
  api = new SigningApi({ clock });
  healthy = true;
  stop = new AbortController();
  await files.replace(bootstrapPath, bootstrapText(), 0o600);
});

function bootstrapText(): string {
  const ca = Buffer.from(api.authority.pem).toString('base64');
  return JSON.stringify({
    'current-context': 'boot',
    clusters: [
      {
        name: 'c',
        cluster: {
          server: 'https://10.0.0.1:6443',
          'certificate-authority-data': ca,
          'tls-server-name': 'api',
        },
      },
    ],
    users: [{ name: 'u', user: { token: 'abcdef.0123456789abcdef' } }],
    contexts: [{ name: 'boot', context: { cluster: 'c', user: 'u' } }],
  });
}

async function writeKubeconfig(user: object): Promise<void> {
  const { 'current-context': context, clusters, contexts } = JSON.parse(bootstrapText());
  const text = JSON.stringify({
    'current-context': context,
    clusters,
    contexts,
    users: [{ name: 'u', user }],
  });
  await files.replace(kubeconfigPath, text, 0o600);
}

function pair(fromMs: number, toMs: number) {
  const key = newEcKey();
  return { certificate: api.authority.issue(clientIdentity('n1'), key, { fromMs, toMs }), key: keyPem(key) };
}

function inlineUser({ certificate, key }: { certificate: string; key: string }) {
  return {
    'client-certificate-data': Buffer.from(certificate).toString('base64'),
    'client-key-data': Buffer.from(key).toString('base64'),
  };
}

const accessDeps = () => ({ files, clock, log: logs.logger, parseKubeconfig });

const bootstrap = () =>
  bootstrapClientCertificate(
    settings,
    {
      ...accessDeps(),
      random: seededRandom(1),
      connect: async () => ({
        api,
        isHealthy: async () => {
          if (!healthy) throw apiError({ what: 'get /healthz', status: 503, apiStatus: {} });
        },
      }),
    },
    stop.signal,
  );

describe('bootstrap of a node that rotates its certificates', () => {
  test('immediately writes a missing kubeconfig from the bootstrap kubeconfig', async () => {
    const access = await prepareClientAccess(settings, accessDeps());
    assert.deepEqual(access, { requestBy: 'bootstrap', requestPath: bootstrapPath, kubeconfigPath });
    assert.equal(files.modeOf(kubeconfigPath), 0o600);
    const context = await parseKubeconfig({
      file: kubeconfigPath,
      text: (await files.read(kubeconfigPath)) ?? '',
    });
    assert.equal(context.name, 'default-context');
    assert.equal(context.namespace, 'default');
    assert.equal(context.cluster.server.href, 'https://10.0.0.1:6443/');
    assert.equal(context.cluster.tlsServerName, 'api');
    assert.equal(context.cluster.ca?.kind === 'inline' && context.cluster.ca.pem, api.authority.pem);
    assert.equal(context.user.token, undefined);
    assert.deepEqual(kubeconfigCertificate(context), {
      kind: 'files',
      certificateFile: current,
      keyFile: current,
    });
    const text = (await files.read(kubeconfigPath)) ?? '';
    for (const name of ['default-cluster', 'default-auth', 'default-context']) assert.ok(text.includes(name));
    assert.equal(api.calls.length, 0);
  });

  test('prefers a valid kubeconfig over the bootstrap kubeconfig', async () => {
    await writeKubeconfig(inlineUser(pair(clock.now(), clock.now() + day)));
    await files.remove(bootstrapPath);
    assert.equal((await prepareClientAccess(settings, accessDeps())).requestBy, 'kubeconfig');
    await writeKubeconfig({ token: 'something' });
    assert.equal((await prepareClientAccess(settings, accessDeps())).requestBy, 'kubeconfig');
  });

  test('replaces a kubeconfig that is invalid or expired, or whose certificate is missing', async () => {
    const users = [
      inlineUser(pair(clock.now() - 2 * day, clock.now() - day)),
      { 'client-certificate': current, 'client-key': current },
      {},
    ];
    for (const user of users) {
      await writeKubeconfig(user);
      assert.equal((await prepareClientAccess(settings, accessDeps())).requestBy, 'bootstrap');
    }
    await files.replace(kubeconfigPath, 'broken: [', 0o600);
    assert.equal((await prepareClientAccess(settings, accessDeps())).requestBy, 'bootstrap');
    assert.match(
      [...logs.records].map(({ fields }) => String(fields['why'])).join('\n'),
      /expired 2025-12-31T00:00:00Z/,
    );
  });

  test('does not bootstrap with an expired kubeconfig if the certificate store has a valid certificate', async () => {
    const stored = pair(clock.now(), clock.now() + day);
    await files.replace(
      '/pki/kubelet-client-2026-01-01-00-00-00.pem',
      stored.certificate + stored.key,
      0o600,
    );
    await files.link('/pki/kubelet-client-2026-01-01-00-00-00.pem', current);
    await writeKubeconfig(inlineUser(pair(clock.now() - 2 * day, clock.now() - day)));
    assert.equal((await prepareClientAccess(settings, accessDeps())).requestBy, 'kubeconfig');
  });

  test('without rotation, uses the stored certificate when that of the kubeconfig is expired or missing', async () => {
    const stored = pair(clock.now(), clock.now() + day);
    const path = '/pki/kubelet-client-2026-01-01-00-00-00.pem';
    await files.replace(path, stored.certificate + stored.key, 0o600);
    await files.link(path, current);
    const standIn = async (nodeName = 'n1') => {
      const text = (await files.read(kubeconfigPath)) ?? '';
      const context = await parseKubeconfig({ file: kubeconfigPath, text });
      const found = await storedCertificate(context, { certDirectory: '/pki', nodeName }, accessDeps());
      return found?.from;
    };
    await writeKubeconfig(inlineUser(pair(clock.now() - day, clock.now() + day)));
    assert.equal(await standIn(), undefined, 'a valid one is used even if the store has a newer one');
    await writeKubeconfig(inlineUser(pair(clock.now() - 2 * day, clock.now() - day)));
    assert.equal(await standIn(), current);
    assert.equal(await standIn('n2'), undefined, 'it is for another node');
    await writeKubeconfig({ 'client-certificate': '/gone.crt', 'client-key': '/gone.key' });
    assert.equal(await standIn(), current);
    await writeKubeconfig({ token: 'x' });
    assert.equal(await standIn(), undefined, 'a token needs none');
    await clock.advance(2 * day);
    await writeKubeconfig(inlineUser(pair(clock.now() - 2 * day, clock.now() - day)));
    assert.equal(await standIn(), undefined, 'both are expired');
  });

  test('fails without a usable certificate, and reports the problem and the remedy', async () => {
    await files.remove(bootstrapPath);
    await assert.rejects(prepareClientAccess({ ...settings, bootstrapPath: '' }, accessDeps()), {
      code: 'CERTIFICATE_BOOTSTRAP',
      message: /no kubeconfig \/etc\/kubernetes\/kubelet\.conf.*--bootstrap-kubeconfig/,
    });
    await assert.rejects(prepareClientAccess(settings, accessDeps()), {
      code: 'CERTIFICATE_BOOTSTRAP',
      message: /bootstrap-kubelet\.conf does not exist.*because There is no kubeconfig/,
    });
  });

  test('accepts an expired certificate if there is no bootstrap kubeconfig, so that static pods run', async () => {
    await writeKubeconfig(inlineUser(pair(clock.now() - 2 * day, clock.now() - day)));
    const access = await prepareClientAccess({ ...settings, bootstrapPath: '' }, accessDeps());
    assert.equal(access.requestBy, 'kubeconfig');
    assert.match(
      [...logs.records].map(({ message }) => message).join(),
      /expired 2025-12-31T00:00:00Z\. Renew it/,
    );
  });

  test('sends requests with the rotated certificate instead of the one of the kubeconfig', async () => {
    const texts = pair(clock.now(), clock.now() + day);
    const context = await parseKubeconfig({ file: bootstrapPath, text: bootstrapText() });
    const used = withClientCertificate(context, readKeyPair({ ...texts, from: '/x' }));
    assert.equal(
      used.user.certificate?.cert.kind === 'inline' && used.user.certificate.cert.pem,
      texts.certificate,
    );
    assert.equal(withClientCertificate(context, undefined), context);
  });
});

describe('bootstrap of a node that does not rotate its certificates', () => {
  test('waits for the certificate before it writes the kubeconfig', async () => {
    const done = bootstrap();
    await clock.advance(0);
    const [csr] = api.created;
    assert.ok(csr);
    const key = createPrivateKey((await files.read(temporary)) ?? '');
    assert.equal(
      csr.metadata.name,
      bootstrapCsrName(key, clientIdentity('n1'), ['digital signature', 'client auth']),
    );
    assert.match(csr.metadata.name, /^node-csr-[\w-]{43}$/);
    assert.equal(await files.kindAt(kubeconfigPath), undefined);
    assert.equal(files.modeOf(temporary), 0o600);
    await clock.advance(50 * minute);
    api.approve(csr.metadata.name);
    await clock.advance(0);
    assert.notEqual(await done, 'not-needed');
    assert.deepEqual(files.paths(), [
      bootstrapPath,
      kubeconfigPath,
      '/pki/kubelet-client-2026-01-01-00-50-00.pem',
      current,
    ]);
    assert.equal(await bootstrap(), 'not-needed');
    assert.equal(clock.pendingTimers, 0);
  });

  test('reuses the signing request and its key after a restart', async () => {
    const first = bootstrap();
    first.catch(() => {});
    await clock.advance(minute);
    stop.abort(new Error('killed'));
    await assert.rejects(first, /killed/);
    stop = new AbortController();
    const second = bootstrap();
    await clock.advance(0);
    assert.equal(api.created.length, 1);
    api.approve(api.created[0]?.metadata.name ?? '');
    await clock.advance(0);
    assert.notEqual(await second, 'not-needed');
  });

  test('replaces an existing signing request of the same name by one with a new key if the certificate of the request has expired', async () => {
    const first = bootstrap();
    first.catch(() => {});
    await clock.advance(0);
    api.approve(api.created[0]?.metadata.name ?? '');
    stop.abort(new Error('killed'));
    await clock.advance(2 * day);
    await files.remove(current);
    const key = keyPem(newEcKey());
    await files.replace(temporary, key, 0o600);
    const name = bootstrapCsrName(createPrivateKey(key), clientIdentity('n1'), [
      'digital signature',
      'client auth',
    ]);
    stop = new AbortController();
    const again = bootstrap();
    again.catch(() => {});
    await clock.advance(0);
    assert.equal(api.created[1]?.metadata.name, name);
    api.approve(name);
    stop.abort(new Error('killed'));
    await files.remove(kubeconfigPath);
    await files.remove(current);
    await files.replace(temporary, key, 0o600);
    await clock.advance(2 * day);
    stop = new AbortController();
    const last = bootstrap();
    await clock.advance(0);
    assert.equal(api.created.length, 3);
    assert.notEqual(api.created[2]?.metadata.name, name);
    api.approve(api.created[2]?.metadata.name ?? '');
    await clock.advance(0);
    assert.notEqual(await last, 'not-needed');
  });

  test("requests a certificate even if the server's health check fails for a minute", async () => {
    healthy = false;
    const done = bootstrap();
    await clock.advance(59_000);
    assert.equal(api.created.length, 0);
    await clock.advance(5_000);
    assert.equal(api.created.length, 1);
    api.approve(api.created[0]?.metadata.name ?? '');
    await clock.advance(0);
    await done;
    assert.match([...logs.records].map(({ message }) => message).join(), /not healthy within a minute/);
  });

  test('fails if no certificate is issued within an hour of the request, and immediately after a denial', async () => {
    const done = bootstrap();
    done.catch(() => {});
    await clock.advance(60 * minute);
    await assert.rejects(done, { code: 'DEADLINE_EXCEEDED' });
    const second = bootstrap();
    second.catch(() => {});
    await clock.advance(0);
    api.condition(api.created[0]?.metadata.name ?? '', 'Denied', 'unknown machine');
    await clock.advance(0);
    await assert.rejects(second, { code: 'CERTIFICATE_DENIED', message: /unknown machine/ });
    assert.equal(await files.kindAt(temporary), 'file');
  });
});
