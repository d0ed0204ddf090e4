import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { MemoryCertificateFiles } from '../../test/fakes/memory-certificate-files.ts';
import { TestAuthority } from '../../test/fakes/signing-api.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../lib/index.ts';
import { keyPem, newEcKey } from '../protocols/x509/index.ts';
import { CertificateStore } from './certificate-store.ts';
import { clientIdentity } from './node-identity.ts';

const directory = '/pki';
const current = '/pki/kubelet-client-current.pem';
const updated = '/pki/kubelet-client-updated.pem';

let clock: VirtualClock;
let files: MemoryCertificateFiles;
let authority: TestAuthority;

beforeEach(() => {
  clock = new VirtualClock({ startMs: Date.UTC(2026, 2, 4, 5, 6, 7) });
  files = new MemoryCertificateFiles();
  authority = new TestAuthority(clock.now());
});

function open(configured?: { certificateFile: string; keyFile: string }): Promise<CertificateStore> {
  const { logger: log } = collectLogs(clock);
  return CertificateStore.open({ files, clock, log, directory, prefix: 'kubelet-client', configured });
}

function newPair(commonName = 'one') {
  const key = newEcKey();
  const identity = { ...clientIdentity('n'), commonName };
  const certificate = authority.issue(identity, key, { fromMs: clock.now(), toMs: clock.now() + 86_400_000 });
  return { certificate, key: keyPem(key) };
}

async function update(store: CertificateStore, commonName: string) {
  const { certificate, key } = newPair(commonName);
  return await store.update(certificate, key);
}

describe('CertificateStore', () => {
  test('writes a pair into a private file named after the time and links to it', async () => {
    const store = await open();
    const { certificate, key } = newPair();
    const pair = await store.update(certificate + authority.pem, key);
    const file = '/pki/kubelet-client-2026-03-04-05-06-07.pem';
    assert.deepEqual(files.paths(), [file, current]);
    assert.equal(await files.readLink(current), file);
    assert.equal(files.modeOf(current), 0o600);
    assert.equal(await files.read(file), certificate + authority.pem + key);
    assert.equal(pair.from, file);
    assert.equal((await (await open()).load())?.leaf.commonName, 'one');
  });

  test('keeps the current and the previous pair and removes older ones', async () => {
    const store = await open();
    await files.replace('/pki/kubelet-server-2020-01-01-00-00-00.pem', 'of another owner', 0o600);
    for (const name of ['one', 'two', 'three', 'four']) {
      await update(store, name);
      await clock.advance(60_000);
    }
    assert.deepEqual(files.paths(), [
      '/pki/kubelet-client-2026-03-04-05-08-07.pem',
      '/pki/kubelet-client-2026-03-04-05-09-07.pem',
      current,
      '/pki/kubelet-server-2020-01-01-00-00-00.pem',
    ]);
    assert.equal((await store.load())?.leaf.commonName, 'four');
  });

  test('changes nothing for a certificate and a key that do not match', async () => {
    const store = await open();
    await update(store, 'one');
    const before = files.paths();
    const { certificate } = newPair();
    await assert.rejects(store.update(certificate, keyPem(newEcKey())), { code: 'CERTIFICATE_INVALID' });
    assert.deepEqual(files.paths(), before);
  });

  for (const [when, hasOld] of [
    ['while the old link exists', true],
    ['after the old link was removed', false],
  ] as const) {
    test(`completes an interrupted switch of certificates after a kill ${when}`, async () => {
      const store = await open();
      if (hasOld) await update(store, 'old');
      const { certificate, key } = newPair('new');
      await files.replace('/pki/kubelet-client-2026-03-05-00-00-00.pem', certificate + key, 0o600);
      await files.link('/pki/kubelet-client-2026-03-05-00-00-00.pem', updated);
      assert.equal((await (await open()).load())?.leaf.commonName, 'new');
      assert.equal(await files.kindAt(updated), undefined);
    });
  }

  test('removes a -updated link whose target is missing, and keeps the current pair', async () => {
    await update(await open(), 'old');
    await files.link('/pki/nothing.pem', updated);
    const store = await open();
    assert.equal((await store.load())?.leaf.commonName, 'old');
    assert.equal(await files.kindAt(updated), undefined);
  });

  test('rejects a regular file at the path of a link, with the remedy', async () => {
    const { certificate, key } = newPair();
    await files.replace(current, certificate + key, 0o600);
    const store = await open();
    assert.equal((await store.load())?.leaf.commonName, 'one');
    await assert.rejects(update(store, 'two'), {
      code: 'CERTIFICATE_STORE',
      message: /kubelet-client-current\.pem must be a symbolic link: it is a file\. Move it away/,
    });
    await files.replace(updated, 'x', 0o600);
    await assert.rejects(open(), { code: 'CERTIFICATE_STORE' });
  });

  test('loads the current pair first, then the configured files, then the files with the prefix', async () => {
    const configured = { certificateFile: '/etc/a.crt', keyFile: '/etc/a.key' };
    const store = await open(configured);
    assert.equal(await store.load(), undefined);
    const [byPrefix, byFiles] = [newPair('prefix'), newPair('files')];
    await files.replace('/pki/kubelet-client.crt', byPrefix.certificate, 0o644);
    await files.replace('/pki/kubelet-client.key', byPrefix.key, 0o600);
    assert.equal((await store.load())?.leaf.commonName, 'prefix');
    await files.replace('/etc/a.crt', byFiles.certificate, 0o644);
    assert.equal((await store.load())?.leaf.commonName, 'prefix');
    await files.replace('/etc/a.key', byFiles.key, 0o600);
    assert.equal((await store.load())?.leaf.commonName, 'files');
    await update(store, 'current');
    assert.equal((await store.load())?.leaf.commonName, 'current');
  });

  test('prefers a valid pair over an expired one', async () => {
    const store = await open({ certificateFile: '/etc/a.crt', keyFile: '/etc/a.key' });
    await update(store, 'current');
    await clock.advance(2 * 86_400_000);
    assert.equal((await store.load())?.leaf.commonName, 'current');
    const { certificate, key } = newPair('files');
    await files.replace('/etc/a.crt', certificate, 0o644);
    await files.replace('/etc/a.key', key, 0o600);
    assert.equal((await store.load())?.leaf.commonName, 'files');
  });

  test('skips and reports a damaged current pair', async () => {
    const byPrefix = newPair('prefix');
    await files.replace('/pki/kubelet-client.crt', byPrefix.certificate, 0o644);
    await files.replace('/pki/kubelet-client.key', byPrefix.key, 0o600);
    await files.replace('/pki/broken.pem', 'broken', 0o600);
    await files.link('/pki/broken.pem', current);
    const store = await open();
    assert.equal((await store.load())?.leaf.commonName, 'prefix');
    assert.match(store.problems.join(), /kubelet-client-current\.pem/);
  });
});
