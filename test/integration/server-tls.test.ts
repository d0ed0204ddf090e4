import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { get } from 'node:https';
import { connect as connectPlainly } from 'node:net';
import { after, before, test } from 'node:test';
import { connect, type TlsOptions } from 'node:tls';
import { collectLogs, realClock } from '../../src/lib/index.ts';
import { checkChain } from '../../src/protocols/x509/index.ts';
import { Listener, text } from '../../src/server/index.ts';
import { type ServingCertificate, tlsProfile } from '../../src/server/remote/index.ts';
import { type Authority, CertificateFolder } from '../fakes/certificate-authority.ts';

let folder: CertificateFolder;
let authority: Authority;
let pair: ServingCertificate;

before(() => {
  folder = new CertificateFolder();
  authority = folder.authority('/CN=ca');
  pair = authority.issue({ subject: '/CN=node', use: 'serverAuth', san: 'IP:127.0.0.1' });
});

after(() => folder?.[Symbol.dispose]());

interface Harness {
  readonly listener: Listener;
  serveWith(pair: ServingCertificate | undefined): void;
}

async function open(settings: Partial<Parameters<typeof tlsProfile>[0]>, first = true): Promise<Harness> {
  let serving = first ? pair : undefined;
  let changed = () => {};
  const listener = await Listener.open({
    host: '127.0.0.1',
    port: 0,
    routes: [{ path: '/', methods: 'any', answer: () => text(200, 'ok') }],
    logger: collectLogs(realClock()).logger,
    tls: {
      certificates: {
        current: () => serving,
        onChange: (listener) => {
          changed = listener;
          return { [Symbol.dispose]: () => {} };
        },
      },
      clientCa: undefined,
      profile: tlsProfile({ minVersion: '', cipherSuites: [], curves: [], ...settings }),
    },
  });
  return {
    listener,
    serveWith(next) {
      serving = next;
      changed();
    },
  };
}

/** Performs a handshake; returns the negotiated protocol and cipher, or the failure. */
async function agree({ listener }: Harness, options: object): Promise<string> {
  const socket = connect({ port: listener.port, host: '127.0.0.1', rejectUnauthorized: false, ...options });
  try {
    await once(socket, 'secureConnect');
    return `${socket.getProtocol()} ${socket.getCipher().standardName}`;
  } catch {
    return 'refused';
  } finally {
    socket.destroy();
  }
}

const at = (version: NonNullable<TlsOptions['maxVersion']>) => ({ minVersion: version, maxVersion: version });

test('rejects TLS versions below the minimum', async () => {
  const usual = await open({});
  const strict = await open({ minVersion: 'VersionTLS13' });
  const old = await open({ minVersion: 'VersionTLS10' });
  try {
    const weak = { ...at('TLSv1.1'), ciphers: 'ALL:@SECLEVEL=0' };
    assert.equal(await agree(usual, weak), 'refused');
    assert.match(await agree(usual, at('TLSv1.2')), /^TLSv1\.2 TLS_ECDHE_ECDSA_/);
    assert.match(await agree(usual, at('TLSv1.3')), /^TLSv1\.3 /);
    assert.equal(await agree(strict, at('TLSv1.2')), 'refused');
    assert.match(await agree(strict, at('TLSv1.3')), /^TLSv1\.3 /);
    assert.match(await agree(old, weak), /^TLSv1\.1 /);
  } finally {
    for (const { listener } of [usual, strict, old]) await listener.close();
  }
});

test('negotiates only the configured cipher suites and curves, with fixed suites for TLS 1.3', async () => {
  const harness = await open({ cipherSuites: ['TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384'], curves: [24] });
  try {
    assert.equal(await agree(harness, at('TLSv1.2')), 'TLSv1.2 TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384');
    assert.equal(
      await agree(harness, { ...at('TLSv1.2'), ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' }),
      'refused',
    );
    assert.match(await agree(harness, at('TLSv1.3')), /^TLSv1\.3 /);
    assert.equal(await agree(harness, { ...at('TLSv1.3'), ecdhCurve: 'X25519' }), 'refused');
  } finally {
    await harness.listener.close();
  }
});

test('accepts no connection before a certificate is loaded, and serves the first loaded certificate', async () => {
  const harness = await open({}, false);
  try {
    assert.equal(await agree(harness, {}), 'refused');
    harness.serveWith({ cert: 'nonsense', key: 'nonsense' });
    assert.equal(await agree(harness, {}), 'refused');
    harness.serveWith(pair);
    assert.match(await agree(harness, { ca: authority.pem, rejectUnauthorized: true }), /^TLSv1\.3 /);
  } finally {
    await harness.listener.close();
  }
});

test('closes the listener without waiting for a client that has not started its TLS handshake', async () => {
  const { listener } = await open({});
  const silent = connectPlainly(listener.port, '127.0.0.1');
  silent.on('error', () => {});
  await once(silent, 'connect');
  // The connection that is served was opened after the idle one, so the idle connection has been
  // accepted as well.
  assert.match(await agree({ listener, serveWith: () => {} }, {}), /^TLSv1\.3 /);
  const startMs = performance.now();
  await listener.close();
  assert(performance.now() - startMs < 8_000, 'less than the handshake timeout');
  silent.destroy();
});

test('rejects headers above 128 KiB of a client without a certificate', async () => {
  const { listener } = await open({});
  const status = (bytes: number) =>
    new Promise((resolve) => {
      const headers = { 'x-long': 'x'.repeat(bytes) };
      const request = get({
        port: listener.port,
        host: '127.0.0.1',
        agent: false,
        rejectUnauthorized: false,
        headers,
      });
      request.on('response', (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      request.on('error', () => resolve('broken off'));
    });
  try {
    assert.equal(await status(120_000), 200);
    assert.notEqual(await status(140_000), 200);
  } finally {
    await listener.close();
  }
});

test('verifies a certificate chain against the authorities and the current time', () => {
  const blocks = (pem: string) =>
    (pem.match(/-----BEGIN[\s\S]+?-----END CERTIFICATE-----/g) ?? []).map(
      (each) => new X509Certificate(each),
    );
  const roots = blocks(authority.pem);
  // The check uses a later time, because a certificate created in this second may be valid only
  // from the end of the second.
  const now = Date.now() + 10_000;
  const judge = (cert: string, by = roots, time = now) => checkChain(blocks(cert), by, time).kind;
  const day = 24 * 3_600_000;
  const client = authority.issue({ subject: '/CN=a' }).cert;
  const between = authority.intermediate('/CN=between').issue({ subject: '/CN=a' }).cert;
  const deep = authority.intermediate('/CN=1').intermediate('/CN=2').issue({ subject: '/CN=a' }).cert;
  for (const good of [client, between, deep]) assert.equal(judge(good), 'vouched');
  assert.equal(judge(client, roots, now + 3 * day), 'stranger', 'expired');
  assert.equal(judge(client, roots, now - 3 * day), 'stranger', 'not valid yet');
  assert.equal(
    judge(client, blocks(folder.authority('/CN=ca').pem)),
    'stranger',
    'another authority of the same name',
  );
  assert.equal(judge(client, []), 'stranger');
  assert.equal(checkChain([], roots, now).kind, 'stranger');
  assert.equal(judge(pair.cert), 'stranger', 'for servers only');
  const noAuthority = authority.intermediate('/CN=c', 'clientAuth').issue({ subject: '/CN=a' }).cert;
  assert.equal(judge(noAuthority), 'stranger', 'issued by a non-CA certificate');
  assert.equal(
    judge(between.slice(0, between.indexOf('-----END CERTIFICATE-----') + 26)),
    'stranger',
    'an intermediate is missing',
  );
  const old = authority.issue({ subject: '/CN=a', days: -1 }).cert;
  assert.equal(judge(old), 'stranger', 'expired');
});
