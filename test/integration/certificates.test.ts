import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import {
  lstat,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { connect, createSecureContext, createServer } from 'node:tls';
import { CertificateStore } from '../../src/certificates/certificate-store.ts';
import {
  openClientCertificate,
  openServingCertificate,
  realCertificateFiles,
} from '../../src/certificates/index.ts';
import { clientIdentity } from '../../src/certificates/node-identity.ts';
import { collectLogs, realClock, seededRandom } from '../../src/lib/index.ts';
import {
  createCertificateRequest,
  keyPem,
  newEcKey,
  newPrivateKey,
  readCertificateRequest,
  readKeyPair,
} from '../../src/protocols/x509/index.ts';
import { SigningApi, TestAuthority } from '../fakes/signing-api.ts';
import { until } from '../fakes/until.ts';

const clock = realClock();
const files = realCertificateFiles();
const { logger: log } = collectLogs(clock);
const deps = { files, clock, random: seededRandom(1), log };
const identity = {
  commonName: 'system:node:n1',
  organizations: ['system:nodes'],
  dnsNames: ['localhost'],
  ips: ['127.0.0.1', 'fd00::1'],
};

let root: string;
let directory: string;
let stop: AbortController;

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'kubeling-certificates-'));
});
after(() => rm(root, { recursive: true, force: true }));
beforeEach(async () => {
  directory = await mkdtemp(join(root, 'case-'));
  stop = new AbortController();
});
afterEach(() => stop.abort(new Error('the test has ended')));

function openssl(args: readonly string[], input?: string): string {
  return execFileSync('openssl', args, {
    input: input ?? '',
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

function issued(authority: TestAuthority, commonName: string) {
  const key = newEcKey();
  const nowMs = clock.now();
  const certificate = authority.issue({ ...identity, commonName }, key, {
    fromMs: nowMs - 1_000,
    toMs: nowMs + 3_600_000,
  });
  return { certificate, key: keyPem(key) };
}

describe('certificates and signing requests checked with openssl', () => {
  for (const kind of ['ec-p256', 'rsa-2048'] as const) {
    test(`creates a signed, complete certificate request with a key of ${kind}`, async () => {
      const pem = createCertificateRequest(identity, await newPrivateKey(kind));
      const text = openssl(['req', '-text', '-noout', '-verify', '-nameopt', 'utf8'], pem);
      assert.match(text, /Subject: ?O ?= ?system:nodes, ?CN ?= ?system:node:n1/);
      assert.match(text, /DNS:localhost, IP Address:127\.0\.0\.1, IP Address:FD00:0:0:0:0:0:0:1/);
    });
  }

  test('parses a certificate request created by openssl', () => {
    const pem = openssl([
      'req',
      '-new',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-keyout',
      join(directory, 'k'),
      '-subj',
      '/O=system:nodes/CN=system:node:n1',
      '-addext',
      'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:fd00::1',
    ]);
    assert.deepEqual(readCertificateRequest(pem).identity, identity);
  });

  test('creates a CA certificate that passes all checks of openssl', async () => {
    const authority = new TestAuthority(clock.now());
    await writeFile(join(directory, 'ca.pem'), authority.pem);
    await writeFile(join(directory, 'leaf.pem'), issued(authority, 'x').certificate);
    const verified = openssl([
      'verify',
      '-purpose',
      'sslserver',
      '-verify_ip',
      '127.0.0.1',
      '-CAfile',
      join(directory, 'ca.pem'),
      join(directory, 'leaf.pem'),
    ]);
    assert.match(verified, /: OK/);
  });

  test('accepts a certificate pair created by openssl', async () => {
    const at = { certificate: join(directory, 'o.crt'), key: join(directory, 'o.key') };
    openssl([
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-days',
      '3',
      '-keyout',
      at.key,
      '-out',
      at.certificate,
      '-subj',
      '/O=system:nodes/CN=system:node:n1',
      '-addext',
      'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:fd00::1',
    ]);
    const [certificate, key] = [await readFile(at.certificate, 'utf8'), await readFile(at.key, 'utf8')];
    const { leaf } = readKeyPair({ certificate, key, from: at.certificate });
    const { commonName, organizations, dnsNames, ips } = leaf;
    assert.deepEqual({ commonName, organizations, dnsNames, ips }, identity);
  });
});

describe('certificate store on a real disk', () => {
  test('stores pairs with private modes, switches the link atomically and completes an interrupted switch', async () => {
    const authority = new TestAuthority(clock.now());
    const open = () => CertificateStore.open({ files, clock, log, directory, prefix: 'kubelet-client' });
    const store = await open();
    const one = issued(authority, 'one');
    const pair = await store.update(one.certificate, one.key);
    assert.equal((await stat(pair.from)).mode & 0o777, 0o600);
    assert.ok((await lstat(store.currentPath)).isSymbolicLink());
    assert.equal(await readlink(store.currentPath), pair.from);
    const two = issued(authority, 'two');
    const next = join(directory, 'kubelet-client-2099-01-01-00-00-00.pem');
    await writeFile(next, two.certificate + two.key, { mode: 0o600 });
    await symlink(next, join(directory, 'kubelet-client-updated.pem'));
    assert.equal((await (await open()).load())?.leaf.commonName, 'two');
    assert.ok(!existsSync(join(directory, 'kubelet-client-updated.pem')));
    const three = issued(authority, 'three');
    await store.update(three.certificate, three.key);
    const kept = (await readdir(directory)).filter((name) => /\d\.pem$/.test(name));
    assert.equal(kept.length, 2);
    assert.equal((await (await open()).load())?.leaf.commonName, 'three');
  });

  test('requests and stores a client certificate that a TLS server accepts', async () => {
    const api = new SigningApi({ clock, policy: 'issue' });
    const settings = { nodeName: 'n1', certDirectory: directory, kubeconfig: undefined, api: () => api };
    const manager = await openClientCertificate(settings, deps);
    const rotated = new Promise<void>((resolve) => void manager.onRotated(() => resolve()));
    const running = manager.run(stop.signal).catch(() => {});
    await rotated;
    const pem = await readFile(join(directory, 'kubelet-client-current.pem'), 'utf8');
    const serving = issued(api.authority, 'server');
    await using server = createServer(
      { cert: serving.certificate, key: serving.key, ca: [api.authority.pem], requestCert: true },
      (socket) =>
        socket.end(socket.authorized ? (socket.getPeerCertificate().subject.CN as string) : 'nobody'),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const observed = await ask((server.address() as AddressInfo).port, { ca: api.authority.pem, pem });
    assert.equal(observed.text, clientIdentity('n1').commonName);
    stop.abort(new Error('over'));
    await running;
    assert.deepEqual(
      (await readdir(directory)).filter((name) => name.endsWith('.json')),
      [],
    );
  });
});

describe('serving certificate on a real disk', () => {
  const source = { kind: 'self-signed', hostname: 'localhost', keyKind: 'ec-p256' } as const;
  const addresses = () => [{ type: 'InternalIP', address: '127.0.0.1' }];

  test('serves a self-signed certificate that is trusted by name and by address', async () => {
    const serving = await openServingCertificate(
      { source, nodeName: 'n1', certDirectory: directory, addresses },
      deps,
    );
    const ca = await readFile(join(directory, 'kubelet.crt'), 'utf8');
    assert.equal((await stat(join(directory, 'kubelet.key'))).mode & 0o777, 0o600);
    assert.equal((await stat(join(directory, 'kubelet.crt'))).mode & 0o777, 0o644);
    const verified = openssl([
      'verify',
      '-x509_strict',
      '-CAfile',
      join(directory, 'kubelet.crt'),
      join(directory, 'kubelet.crt'),
    ]);
    assert.match(verified, /: OK/);
    const pair = serving.current();
    await using server = createServer({ cert: pair?.certificatePem, key: pair?.keyPem }, (socket) =>
      socket.end('hello'),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    assert.equal((await ask(port, { ca })).text, 'hello');
    assert.equal((await ask(port, { ca, name: 'localhost' })).text, 'hello');
    await assert.rejects(ask(port, { ca, name: 'other' }), /does not match/);
  });

  test('serves replaced certificate files on new connections immediately, and ignores invalid ones', async () => {
    const authority = new TestAuthority(clock.now());
    const at = { certificateFile: join(directory, 'a.crt'), keyFile: join(directory, 'a.key') };
    const put = async (pair: { certificate: string; key: string }) => {
      for (const [path, text] of [
        [at.keyFile, pair.key],
        [at.certificateFile, pair.certificate],
      ] as const) {
        await writeFile(`${path}.tmp`, text);
        await rename(`${path}.tmp`, path);
      }
    };
    await put(issued(authority, 'one'));
    const serving = await openServingCertificate(
      { source: { kind: 'files', files: at }, nodeName: 'n1', certDirectory: directory, addresses },
      deps,
    );
    const running = serving.run(stop.signal).catch(() => {});
    const contextOf = () => ({ cert: serving.current()?.certificatePem, key: serving.current()?.keyPem });
    await using server = createServer(contextOf(), (socket) => socket.end('hello'));
    serving.onRotated(() => server.setSecureContext(contextOf()));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const served = async () => (await ask(port, { ca: authority.pem })).peer;
    assert.equal(await served(), 'one');
    await put(issued(authority, 'two'));
    await until('the second certificate is served', () => serving.current()?.leaf.commonName === 'two');
    assert.equal(await served(), 'two');
    await put({ certificate: 'broken', key: 'broken' });
    await until('the broken certificate is detected', () => serving.problem() !== undefined);
    assert.equal(await served(), 'two');
    await put(issued(authority, 'three'));
    await until('the third certificate is served', () => serving.current()?.leaf.commonName === 'three');
    assert.equal(await served(), 'three');
    assert.equal(serving.problem(), undefined);
    stop.abort(new Error('over'));
    await running;
  });
});

interface Question {
  readonly ca: string;
  readonly pem?: string;
  readonly name?: string;
}

function ask(
  port: number,
  { ca, pem, name }: Question,
): Promise<{ readonly text: string; readonly peer: string }> {
  return new Promise((resolve, reject) => {
    const secureContext = createSecureContext({
      ca: [ca],
      ...(pem === undefined ? {} : { cert: pem, key: pem }),
    });
    const socket = connect({
      host: '127.0.0.1',
      port,
      secureContext,
      ...(name === undefined ? {} : { servername: name }),
    });
    let text = '';
    let peer = '';
    socket.setTimeout(60_000, () => socket.destroy(new Error('no server responds')));
    socket.on('secureConnect', () => {
      peer = String(socket.getPeerCertificate().subject.CN);
    });
    socket.on('data', (data) => {
      text += data.toString();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve({ text, peer }));
  });
}
