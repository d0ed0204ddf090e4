import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { Agent, createServer, type RequestOptions, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { parseKubeconfig } from '../../src/api/index.ts';
import { collectLogs, realClock } from '../../src/lib/index.ts';
import { StatusError } from '../../src/local-api/api/index.ts';
import { Connections } from '../../src/local-api/http/connections.ts';
import {
  createCertificateSigner,
  diskCredentialFiles,
  followCertificates,
  openServerCredentials,
  type ServerCredentials,
  tlsOptions,
} from '../../src/local-api/security/index.ts';
import {
  createCertificateRequest,
  newEcKey,
  readCertificateRequest,
} from '../../src/protocols/x509/index.ts';
import { type ClientPair, clientPair, SecurityRig, someAuthorities } from '../fakes/security-rig.ts';

const admin = { commonName: 'kubeling-admin', organizations: ['system:masters'] };
const hourMs = 3_600_000;
const clock = realClock();

interface Reply {
  readonly status: number;
  readonly text: string;
  readonly serial: string | undefined;
}

/** A TLS server that responds with the name and groups of the authenticated user. */
class WhoServer implements AsyncDisposable {
  readonly #server;
  readonly #following: Disposable;
  readonly port: number;
  readonly authorities: ServerCredentials;

  private constructor(server: ReturnType<typeof createServer>, authorities: ServerCredentials) {
    this.#server = server;
    this.#following = followCertificates(server, authorities);
    this.authorities = authorities;
    this.port = (server.address() as AddressInfo).port;
  }

  static async open(
    harness: SecurityRig,
    authorities: ServerCredentials = harness.authorities,
  ): Promise<WhoServer> {
    const connections = new Connections({ anonymous: 10, unprivileged: 10 });
    const server = createServer(tlsOptions(authorities), (incoming, outgoing) => {
      void (async () => {
        try {
          const { signal } = new AbortController();
          const user = await harness.security.authenticate(connections.clientInfoOf(incoming), signal);
          outgoing.end(user.name);
        } catch (error) {
          outgoing.statusCode = error instanceof StatusError ? error.status.code : 500;
          outgoing.end(String(error));
        }
      })();
    });
    connections.track(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new WhoServer(server, authorities);
  }

  ask(more: RequestOptions = {}): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const options = {
        host: '127.0.0.1',
        port: this.port,
        ca: this.authorities.authorityPem,
        agent: false as const,
      };
      const asking = request({ ...options, ...more }, (reply) => {
        const { serialNumber: serial } = (reply.socket as TLSSocket).getPeerX509Certificate() ?? {};
        let text = '';
        reply.on('data', (chunk) => {
          text += String(chunk);
        });
        reply.on('end', () => resolve({ status: reply.statusCode ?? 0, text, serial }));
        reply.on('error', reject);
      });
      asking.on('error', reject);
      asking.end();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#following[Symbol.dispose]();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

describe('API client authentication over TLS', () => {
  let harness: SecurityRig;
  let server: WhoServer;
  before(async () => {
    harness = await SecurityRig.open(clock);
    server = await WhoServer.open(harness);
  });
  after(() => server[Symbol.asyncDispose]());

  const certificates: Readonly<
    Record<string, readonly [status: number, text: RegExp, make: () => ClientPair | Promise<ClientPair>]>
  > = {
    'of the admin': [200, /^kubeling-admin$/, () => clientPair(harness.authorities, admin, clock.now())],
    'of the node': [
      200,
      /^system:node:n1$/,
      () => {
        const { certificatePem: cert, keyPem: key } = harness.authorities.pairOf('node');
        return { cert, key };
      },
    ],
    'of another authority': [
      401,
      /Unauthorized/,
      async () => clientPair(await someAuthorities(clock), admin, clock.now()),
    ],
    'that has expired': [
      401,
      /Unauthorized/,
      () => clientPair(harness.authorities, admin, clock.now(), [-2 * hourMs, -hourMs]),
    ],
    'that is not valid yet': [
      401,
      /Unauthorized/,
      () => clientPair(harness.authorities, admin, clock.now(), [hourMs, 2 * hourMs]),
    ],
    'of the server itself': [
      401,
      /Unauthorized/,
      () => {
        const { certificatePem: cert, keyPem: key } = harness.authorities.pairOf('serving');
        return { cert, key };
      },
    ],
  };
  for (const [what, [status, text, make]] of Object.entries(certificates)) {
    test(`returns ${status} for a client certificate ${what}`, async () => {
      const reply = await server.ask(await make());
      assert.equal(reply.status, status);
      assert.match(reply.text, text);
    });
  }

  test('authenticates a certificate signed through a certificate signing request', async () => {
    const key = newEcKey();
    const identity = { commonName: 'joe', organizations: ['staff'], dnsNames: [], ips: [] };
    const cert = await createCertificateSigner(harness.authorities.authority).sign({
      request: createCertificateRequest(identity, key),
      usages: ['digital signature', 'client auth'],
      notBefore: clock.now(),
      notAfter: (clock.now() + hourMs) as ReturnType<typeof clock.now>,
    });
    const reply = await server.ask({ cert, key: key.export({ format: 'pem', type: 'pkcs8' }) });
    assert.deepEqual([reply.status, reply.text], [200, 'joe']);
  });

  test('treats missing credentials as anonymous, authenticates a valid token and rejects a wrong one', async () => {
    assert.equal((await server.ask()).text, 'system:anonymous');
    const authorization = `Bearer ${harness.tokens.issue(harness.claims())}`;
    assert.equal(
      (await server.ask({ headers: { authorization } })).text,
      'system:serviceaccount:shop:builder',
    );
    assert.equal((await server.ask({ headers: { authorization: `${authorization}x` } })).status, 401);
  });

  test('clients can verify the serving certificate for all names of the server and for no other name', async () => {
    for (const servername of [
      'localhost',
      'kubernetes',
      'kubernetes.default',
      'kubernetes.default.svc.cluster.local',
    ])
      assert.equal((await server.ask({ servername })).status, 200, servername);
    await assert.rejects(server.ask({ servername: 'example.com' }), /does not match/);
    await assert.rejects(server.ask({ ca: (await someAuthorities(clock)).authorityPem }), /certificate/);
  });
});

describe('certificate authority files', () => {
  let directory = '';
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kubeling-authorities-'));
  });
  after(() => rm(directory, { recursive: true, force: true }));

  const open = (at: string, names: { readonly hostnames: readonly string[] } = { hostnames: [] }) => {
    const { logger: log, records } = collectLogs(clock);
    const opening = openServerCredentials({
      directory: at,
      nodeName: 'n1',
      hostnames: () => names.hostnames,
      addresses: () => [],
      clock,
      files: diskCredentialFiles(),
      log,
    });
    return opening.then((authorities) => ({ authorities, records }));
  };

  test('authority files are private, whatever the previous modes of the directory', async () => {
    const at = join(directory, 'modes');
    const { authorities } = await open(at);
    assert.equal((await stat(at)).mode & 0o777, 0o700);
    for (const name of await readdir(at))
      assert.equal((await stat(join(at, name))).mode & 0o777, name === 'ca.crt' ? 0o644 : 0o600, name);
    assert.equal(await readFile(join(at, 'ca.crt'), 'utf8'), authorities.authorityPem);
  });

  test('a renewed serving certificate is used immediately and existing connections stay open', async () => {
    const names = { hostnames: ['first'] };
    const { authorities } = await open(join(directory, 'renewed'), names);
    await using server = await WhoServer.open(await SecurityRig.open(clock), authorities);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    try {
      const old = await server.ask({ agent });
      names.hostnames = ['first', 'second'];
      await authorities.renewAll();
      const renewed = await server.ask();
      assert.notEqual(renewed.serial, old.serial);
      assert.equal(
        renewed.serial,
        new X509Certificate(authorities.pairOf('serving').certificatePem).serialNumber,
      );
      assert.equal((await server.ask({ servername: 'second' })).status, 200);
      assert.equal((await server.ask({ agent })).serial, old.serial, 'the old connection is still open');
    } finally {
      agent.destroy();
    }
  });

  test('certificates pass the strictest verification of OpenSSL', async (context) => {
    if (spawnSync('openssl', ['version']).status !== 0) return context.skip('there is no openssl');
    const at = join(directory, 'strict');
    const { authorities } = await open(at);
    for (const [who, purpose] of [
      ['serving', 'sslserver'],
      ['admin', 'sslclient'],
      ['node', 'sslclient'],
    ] as const) {
      const file = join(directory, `${who}.crt`);
      await writeFile(file, authorities.pairOf(who).certificatePem);
      const argv = ['verify', '-x509_strict', '-purpose', purpose, '-CAfile', join(at, 'ca.crt'), file];
      const { status, stdout, stderr } = spawnSync('openssl', argv, { encoding: 'utf8' });
      assert.equal(status, 0, `${stdout}${stderr}`);
    }
  });

  test('parses certificate signing requests of OpenSSL with all their names', async (context) => {
    const key = join(directory, 'request.key');
    const created = spawnSync('openssl', ['ecparam', '-name', 'secp384r1', '-genkey', '-noout', '-out', key]);
    if (created.status !== 0) return context.skip('there is no openssl');
    const names = 'subjectAltName=DNS:a.example,IP:10.0.0.1,email:joe@example.com,URI:spiffe://x/y';
    const argv = ['req', '-new', '-key', key, '-subj', '/O=staff/CN=joe', '-addext', names, '-sha256'];
    const { stdout, stderr } = spawnSync('openssl', argv, { encoding: 'utf8' });
    assert.match(stdout, /BEGIN CERTIFICATE REQUEST/, stderr);
    const { publicKey: _, ...read } = readCertificateRequest(stdout);
    assert.deepEqual(read, {
      identity: { commonName: 'joe', organizations: ['staff'], dnsNames: ['a.example'], ips: ['10.0.0.1'] },
      emailAddresses: ['joe@example.com'],
      uris: ['spiffe://x/y'],
    });
    const desk = createCertificateSigner((await someAuthorities(clock)).authority);
    assert.throws(
      () =>
        desk.sign({
          request: stdout,
          usages: ['client auth'],
          notBefore: clock.now(),
          notAfter: clock.now(),
        }),
      /joe@example.com.*spiffe/,
    );
  });

  test('authority files are complete, whenever the process that writes them is killed', {
    timeout: 120_000,
  }, async () => {
    const at = join(directory, 'killed');
    const maker = join(import.meta.dirname, '..', 'fakes', 'renew-forever.ts');
    for (let round = 0; round < 8; round++) {
      const child = spawn(process.execPath, [maker, at], { stdio: ['ignore', 'pipe', 'inherit'] });
      const [first] = await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
      assert.equal(String(first), 'made\n');
      // A plain delay: every moment of the write is a valid time to kill the process.
      await clock.sleep(round * 7, new AbortController().signal);
      child.kill('SIGKILL');
      await once(child, 'exit');
      await assertWhole(at);
    }
  });

  async function assertWhole(at: string): Promise<void> {
    const { authorities, records } = await open(at);
    const reported = records.toArray().map(({ message, fields }) => `${message} ${JSON.stringify(fields)}`);
    assert.ok(!reported.some((line) => line.includes('cannot be read')), reported.join('\n'));
    const { publicKey } = authorities.authorityCertificate;
    for (const who of ['serving', 'admin', 'node'] as const)
      assert.ok(new X509Certificate(authorities.pairOf(who).certificatePem).verify(publicKey), who);
    const kubeconfig = join(at, 'admin.kubeconfig');
    await parseKubeconfig({ file: kubeconfig, text: await readFile(kubeconfig, 'utf8') });
    assert.deepEqual(
      (await readdir(at)).filter((name) => name.includes('tmp') || name.includes('broken')),
      [],
    );
  }
});
