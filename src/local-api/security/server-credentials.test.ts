import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { describe, test } from 'node:test';
import { MemoryCredentialFiles } from '../../../test/fakes/memory-authority-files.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { parseKubeconfig } from '../../api/index.ts';
import { collectLogs, KubelingError } from '../../lib/index.ts';
import { readLeaves } from '../../protocols/x509/index.ts';
import {
  openServerCredentials,
  type RotatedCredential,
  type ServerCredentials,
} from './server-credentials.ts';

const dayMs = 86_400_000;

/** Opens the server credentials repeatedly in one directory. */
class Rig {
  readonly clock = new VirtualClock();
  readonly files = new MemoryCredentialFiles();
  readonly logs = collectLogs(this.clock);
  hostnames: readonly string[] = ['box.example.com'];
  addresses: readonly string[] = ['192.168.1.5'];

  open(files: MemoryCredentialFiles = this.files): Promise<ServerCredentials> {
    return openServerCredentials({
      directory: '/d/api',
      nodeName: 'box',
      hostnames: () => this.hostnames,
      addresses: () => this.addresses,
      clock: this.clock,
      files,
      log: this.logs.logger,
    });
  }

  told(): string[] {
    return this.logs.records.toArray().map(({ message, fields }) => `${message} ${JSON.stringify(fields)}`);
  }
}

const who = ['serving', 'admin', 'node'] as const;

function assertSound(authorities: ServerCredentials, nowMs: number): void {
  const authority = authorities.authorityCertificate;
  assert.ok(authority.ca && authority.verify(authority.publicKey));
  for (const one of who) {
    const certificate = new X509Certificate(authorities.pairOf(one).certificatePem);
    assert.ok(certificate.checkIssued(authority), `${one} is issued by this CA`);
    assert.ok(certificate.verify(authority.publicKey), `${one} is signed`);
    for (const { validFromDate, validToDate } of [certificate, authority]) {
      assert.ok(validFromDate.getTime() <= nowMs && nowMs <= validToDate.getTime(), `${one} is valid now`);
    }
  }
}

describe('server credentials', () => {
  test('creates server credentials once in private files and loads them afterwards', async () => {
    const harness = new Rig();
    const first = await harness.open();
    assert.deepEqual(
      harness.files.paths().map((path) => [path, harness.files.modeOf(path)]),
      [
        ['/d/api/admin.pem', 0o600],
        ['/d/api/ca.crt', 0o644],
        ['/d/api/ca.pem', 0o600],
        ['/d/api/node.pem', 0o600],
        ['/d/api/service-accounts.key', 0o600],
        ['/d/api/serving.pem', 0o600],
      ],
    );
    assertSound(first, harness.clock.now());
    const again = await harness.open();
    assert.deepEqual([first.origin, again.origin], ['made', 'kept']);
    for (const one of who) assert.equal(again.pairOf(one).keyPem, first.pairOf(one).keyPem);
    assert.equal(again.authorityPem, first.authorityPem);
    assert.equal(again.tokenKeys[0].id, first.tokenKeys[0].id);
    assert.equal(await harness.files.read('/d/api/ca.crt'), first.authorityPem);
  });

  test('creates server credentials with the expected subjects and server names', async () => {
    const authorities = await new Rig().open();
    const { commonName, organizations } = authorities.pairOf('admin').leaf;
    assert.deepEqual([commonName, organizations], ['kubeling-admin', ['system:masters']]);
    const node = authorities.pairOf('node').leaf;
    assert.deepEqual([node.commonName, node.organizations], ['system:node:box', ['system:nodes']]);
    const { dnsNames, ips } = authorities.pairOf('serving').leaf;
    assert.deepEqual(dnsNames, [
      'localhost',
      'kubernetes',
      'kubernetes.default',
      'kubernetes.default.svc',
      'kubernetes.default.svc.cluster.local',
      'box.example.com',
    ]);
    assert.deepEqual(ips, ['127.0.0.1', '::1', '192.168.1.5']);
  });

  test('renews server credentials in the last third of their validity, without replacing the CA', async () => {
    const harness = new Rig();
    const authorities = await harness.open();
    await authorities.maintainKubeconfig({
      path: '/d/admin.kubeconfig',
      server: 'https://127.0.0.1:7443',
      user: 'admin',
      credentials: 'certificate',
    });
    const before = await harness.files.read('/d/admin.kubeconfig');
    const rotated: RotatedCredential[] = [];
    using _told = authorities.onRotated((what) => rotated.push(...what));
    const end = new AbortController();
    const running = authorities.run(end.signal).catch(() => {});
    const old = authorities.pairOf('serving').certificatePem;
    harness.clock.jumpWall(240 * dayMs);
    await harness.clock.advance(61_000);
    assert.deepEqual(rotated, [], 'two thirds of the validity are not over');
    harness.clock.jumpWall(5 * dayMs);
    await harness.clock.advance(61_000);
    assert.deepEqual(rotated, ['serving', 'admin', 'node']);
    assert.notEqual(authorities.pairOf('serving').certificatePem, old);
    assertSound(authorities, harness.clock.now());
    const after = (await harness.files.read('/d/admin.kubeconfig')) ?? '';
    assert.notEqual(after, before);
    assert.equal(harness.files.modeOf('/d/admin.kubeconfig'), 0o600);
    const context = await parseKubeconfig({ file: '/d/admin.kubeconfig', text: after });
    const { cert } = context.user.certificate ?? {};
    assert.equal(cert?.kind === 'inline' && cert.pem, authorities.pairOf('admin').certificatePem);
    end.abort(new Error('over'));
    await running;
  });

  test('keeps the CA key on renewal, so that old and new certificates are valid together', async () => {
    const harness = new Rig();
    const authorities = await harness.open();
    const [oldAuthority, oldServing] = [authorities.authorityCertificate, authorities.pairOf('serving')];
    harness.clock.jumpWall(2_500 * dayMs);
    await authorities.renewAll();
    assert.notEqual(authorities.authorityPem, oldAuthority.toString());
    assertSound(authorities, harness.clock.now());
    assert.ok(
      new X509Certificate(oldServing.certificatePem).verify(authorities.authorityCertificate.publicKey),
    );
    const serving = new X509Certificate(authorities.pairOf('serving').certificatePem);
    assert.ok(serving.checkIssued(oldAuthority) && serving.verify(oldAuthority.publicKey));
    assert.equal(await harness.files.read('/d/api/ca.crt'), authorities.authorityPem);
  });

  for (const [what, days, why] of [
    ['expired', 400, /it expired 2026-12-31/],
    ['expired with the CA', 4_000, /Renewed the CA certificate with its existing key.*it expired 2035/],
    ['created while the clock was ahead', -400, /not valid before .* the clock was ahead/],
  ] as const) {
    test(`renews certificates that are ${what} at start and logs the reason`, async () => {
      const harness = new Rig();
      const before = await harness.open();
      harness.clock.jumpWall(days * dayMs);
      const after = await harness.open();
      assertSound(after, harness.clock.now());
      assert.notEqual(after.pairOf('admin').certificatePem, before.pairOf('admin').certificatePem);
      assert.ok(
        harness.told().some((line) => why.test(line)),
        harness.told().join('\n'),
      );
    });
  }

  test('reissues the serving certificate when host names or addresses differ at a check', async () => {
    const harness = new Rig();
    const authorities = await harness.open();
    const end = new AbortController();
    const running = authorities.run(end.signal).catch(() => {});
    harness.addresses = ['192.168.1.5', '10.0.0.7', 'fd00::0007'];
    harness.hostnames = ['Box.', 'no name', '10.0.0.9'];
    authorities.recheck();
    await harness.clock.advance(0);
    const { dnsNames, ips } = authorities.pairOf('serving').leaf;
    assert.deepEqual(ips, ['127.0.0.1', '::1', '10.0.0.9', '192.168.1.5', '10.0.0.7', 'fd00::7']);
    assert.ok(dnsNames.includes('box') && !dnsNames.includes('no name'));
    end.abort(new Error('over'));
    await running;
  });

  test('replaces unreadable server credentials and sets the old files aside', async () => {
    const harness = new Rig();
    const before = await harness.open();
    for (const name of ['ca.pem', 'service-accounts.key', 'admin.pem'])
      await harness.files.replace(`/d/api/${name}`, 'half a file', 0o600);
    const after = await harness.open();
    assertSound(after, harness.clock.now());
    assert.equal(after.origin, 'made');
    assert.notEqual(after.authorityPem, before.authorityPem);
    assert.notEqual(after.tokenKeys[0].id, before.tokenKeys[0].id);
    for (const name of ['ca.pem.broken', 'service-accounts.key.broken'])
      assert.equal(await harness.files.read(`/d/api/${name}`), 'half a file');
    const reported = harness.told().join('\n');
    assert.match(reported, /Created a new CA because the old one is unreadable/);
    assert.match(reported, /Created a new service account key/);
    assert.match(reported, /it was signed by another CA/);
  });

  test('keeps the old credentials on a full disk, and retries the renewal', async () => {
    const harness = new Rig();
    const files = new FailingFiles();
    const authorities = await harness.open(files);
    const old = authorities.pairOf('admin').certificatePem;
    const rotated: RotatedCredential[] = [];
    using _told = authorities.onRotated((what) => rotated.push(...what));
    const end = new AbortController();
    const running = authorities.run(end.signal).catch(() => {});
    files.writesLeft = 1;
    harness.clock.jumpWall(300 * dayMs);
    await harness.clock.advance(61_000);
    assert.deepEqual(rotated, ['serving']);
    assert.equal(authorities.pairOf('admin').certificatePem, old);
    assert.ok(
      harness.told().some((line) => line.includes('Failed to renew the certificates of the API server')),
    );
    files.writesLeft = Number.POSITIVE_INFINITY;
    await harness.clock.advance(61_000);
    assert.deepEqual(rotated, ['serving', 'admin', 'node']);
    end.abort(new Error('over'));
    await running;
  });

  test('leaves only complete credential files wherever their creation was interrupted', async () => {
    const whole = new FailingFiles();
    await new Rig().open(whole);
    for (let writes = 0; writes < whole.writes; writes++) {
      const harness = new Rig();
      const files = new FailingFiles();
      files.writesLeft = writes;
      await assert.rejects(harness.open(files), /Cannot write/);
      files.writesLeft = Number.POSITIVE_INFINITY;
      assertSound(await harness.open(files), harness.clock.now());
    }
  });

  test('leaves only complete credential files wherever the renewal was interrupted', async () => {
    for (let writes = 0; writes < 5; writes++) {
      const harness = new Rig();
      const files = new FailingFiles();
      await harness.open(files);
      harness.clock.jumpWall(4_000 * dayMs);
      files.writesLeft = writes;
      await assert.rejects(harness.open(files), /Cannot write/);
      files.writesLeft = Number.POSITIVE_INFINITY;
      const authorities = await harness.open(files);
      assertSound(authorities, harness.clock.now());
      assert.equal(await files.read('/d/api/ca.crt'), authorities.authorityPem);
    }
  });
});

describe('a managed kubeconfig', () => {
  test('restores a deleted kubeconfig and does not rewrite an unchanged one', async () => {
    const harness = new Rig();
    const authorities = await harness.open();
    const path = '/d/node.kubeconfig';
    const server = 'https://127.0.0.1:7443';
    await authorities.maintainKubeconfig({ path, server, user: 'node', credentials: 'file' });
    const text = (await harness.files.read(path)) ?? '';
    const { cluster, user } = await parseKubeconfig({ file: path, text });
    assert.equal(cluster.server.href, `${server}/`);
    assert.deepEqual(user.certificate?.cert.kind === 'file' && user.certificate.cert.path, '/d/api/node.pem');
    await harness.files.replace(path, `${text}# mine\n`, 0o600);
    await authorities.renewAll();
    assert.equal(await harness.files.read(path), `${text}# mine\n`);
    harness.files.remove(path);
    await authorities.renewAll();
    assert.equal(await harness.files.read(path), text);
  });

  test('writes a kubeconfig for another user, with a given cluster name and inline certificates', async () => {
    const harness = new Rig();
    const authorities = await harness.open();
    await authorities.maintainKubeconfig({
      path: '/k',
      server: 'https://[::1]:1',
      user: 'admin',
      credentials: 'certificate',
      name: 'a "b"',
    });
    const context = await parseKubeconfig({ file: '/k', text: (await harness.files.read('/k')) ?? '' });
    assert.equal(context.name, 'a "b"');
    const { ca } = context.cluster;
    assert.deepEqual(
      readLeaves(ca?.kind === 'inline' ? ca.pem : '', 'it').map(({ fingerprint }) => fingerprint),
      readLeaves(authorities.authorityPem, 'it').map(({ fingerprint }) => fingerprint),
    );
  });
});

class FailingFiles extends MemoryCredentialFiles {
  writesLeft = Number.POSITIVE_INFINITY;
  writes = 0;

  override async replace(path: string, text: string, mode: number): Promise<void> {
    if (this.writesLeft <= 0) throw new KubelingError('FILE_WRITE', `Cannot write ${path}: ENOSPC`);
    this.writesLeft--;
    this.writes++;
    await super.replace(path, text, mode);
  }
}
