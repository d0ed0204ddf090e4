import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync, verify, X509Certificate } from 'node:crypto';
import { describe, test } from 'node:test';
import { MemoryCredentialFiles } from '../../../test/fakes/memory-authority-files.ts';
import { SecurityRig, someAuthorities } from '../../../test/fakes/security-rig.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs, instant } from '../../lib/index.ts';
import { createCertificateRequest, keyPem, newEcKey, readLeaves } from '../../protocols/x509/index.ts';
import { logAuditEvent } from './audit.ts';
import { createCertificateSigner } from './certificate-signer.ts';
import { readWebToken, signWebToken } from './token-issuer.ts';
import { jsonWebKeys, openidConfiguration, openTokenKeys } from './token-keys.ts';

const identity = {
  commonName: 'system:node:n1',
  organizations: ['system:nodes'],
  dnsNames: ['n1'],
  ips: ['10.0.0.1'],
};

describe('certificate signer', () => {
  const order = (clock: VirtualClock, request: string, more: object = {}) => ({
    request,
    usages: ['digital signature', 'key encipherment', 'server auth'],
    notBefore: instant(clock.now() - 300_000),
    notAfter: instant(clock.now() + 600_000),
    ...more,
  });

  test('parses a certificate request and rejects malformed ones', async () => {
    const desk = createCertificateSigner((await someAuthorities(new VirtualClock())).authority);
    const request = createCertificateRequest(identity, newEcKey());
    assert.deepEqual(desk.read(request), {
      commonName: 'system:node:n1',
      organizations: ['system:nodes'],
      dnsNames: ['n1'],
      ipAddresses: ['10.0.0.1'],
      emailAddresses: [],
      uris: [],
    });
    assert.equal(desk.read('nothing'), undefined);
    const [first = '', ...lines] = request.split('\n');
    assert.equal(desk.read([first, ...lines.slice(1)].join('\n')), undefined);
  });

  test('signs a certificate with the requested subject, validity and usages', async () => {
    const clock = new VirtualClock();
    const authorities = await someAuthorities(clock);
    const key = newEcKey();
    const pem = await createCertificateSigner(authorities.authority).sign(
      order(clock, createCertificateRequest(identity, key)),
    );
    const certificate = new X509Certificate(pem);
    assert.ok(certificate.verify(authorities.authorityCertificate.publicKey) && !certificate.ca);
    assert.ok(certificate.checkPrivateKey(key));
    assert.deepEqual(certificate.keyUsage, ['1.3.6.1.5.5.7.3.1']);
    const [leaf] = readLeaves(pem, 'it');
    assert.deepEqual(
      [leaf?.commonName, leaf?.dnsNames, leaf?.ips, leaf?.notBeforeMs, leaf?.notAfterMs],
      ['system:node:n1', ['n1'], ['10.0.0.1'], clock.now() - 300_000, clock.now() + 600_000],
    );
  });

  test('signs no certificate that outlives the CA', async () => {
    const clock = new VirtualClock();
    const authorities = await someAuthorities(clock);
    const late = { notAfter: instant(clock.now() + 20 * 365 * 86_400_000) };
    const request = createCertificateRequest(identity, newEcKey());
    const [leaf] = readLeaves(
      await createCertificateSigner(authorities.authority).sign(order(clock, request, late)),
      'it',
    );
    assert.equal(leaf?.notAfterMs, authorities.authorityCertificate.validToDate.getTime());
  });

  test('rejects unsupported certificate requests and lists all reasons', async () => {
    const clock = new VirtualClock();
    const desk = createCertificateSigner((await someAuthorities(clock)).authority);
    const request = createCertificateRequest(identity, newEcKey());
    const sign = async (more: object) => await desk.sign(order(clock, request, more));
    await assert.rejects(sign({ usages: ['cert sign', 'fishing'] }), /"cert sign".*"fishing"/);
    await assert.rejects(sign({ notAfter: clock.now() - 400_000 }), /expire before it becomes valid/);
    await assert.rejects(sign({ request: 'nothing' }), /must have a PEM block/);
  });
});

describe('service account tokens', () => {
  test('verifies tokens with the published keys of any type', async () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const files = new MemoryCredentialFiles();
    const log = collectLogs(new VirtualClock()).logger;
    await files.replace('/k', keyPem(newEcKey()) + keyPem(privateKey), 0o600);
    const keys = await openTokenKeys({ files, log, path: '/k' });
    assert.deepEqual(
      keys.map(({ algorithm }) => algorithm),
      ['ES256', 'RS256'],
    );
    const published = jsonWebKeys(keys)['keys'] as readonly Record<string, string>[];
    for (const key of keys) {
      const [head = '', body = '', signature = ''] = signWebToken({ a: 1 }, key).split('.');
      const { kid } = JSON.parse(Buffer.from(head, 'base64url').toString()) as { readonly kid: string };
      const jwk = published.find((each) => each['kid'] === kid) ?? {};
      assert.equal(jwk['d'], undefined, 'private keys are not published');
      const publicKey = createPublicKey({ key: jwk, format: 'jwk' });
      const how = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const;
      assert.ok(verify('sha256', Buffer.from(`${head}.${body}`), how, Buffer.from(signature, 'base64url')));
      assert.deepEqual(readWebToken(`${head}.${body}.${signature}`, keys), { a: 1 });
    }
    assert.deepEqual(openidConfiguration('https://i', 'https://127.0.0.1:7443/', keys), {
      issuer: 'https://i',
      jwks_uri: 'https://127.0.0.1:7443/openid/v1/jwks',
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256', 'RS256'],
    });
  });

  test('accepts a token for the audiences that it shares with the request', async () => {
    const harness = await SecurityRig.open();
    const token = harness.tokens.issue(harness.claims({ aud: ['vault', 'a', 'b'] }));
    assert.deepEqual(harness.tokens.verify(token, ['b', 'c', 'a']).audiences, ['b', 'a']);
    assert.match(harness.tokens.verify(token, []).error ?? '', /token audiences .*vault.* is invalid/);
    assert.equal(harness.tokens.verify(token, []).authenticated, false);
  });

  test('rejects malformed tokens of any shape without an internal error', async () => {
    const harness = await SecurityRig.open();
    const [key] = harness.authorities.tokenKeys;
    const broken = [
      {},
      { 'kubernetes.io': 1 },
      { ...harness.claims(), aud: 'x' },
      { ...harness.claims(), exp: 'soon' },
    ];
    const strange = ['', '.', '..', '...', 'a.b.c', `${'x'.repeat(20_000)}.a.b`, '\u0000.\u0000.\u0000'];
    for (const token of [...strange, ...broken.map((claims) => signWebToken(claims, key))])
      assert.equal(harness.tokens.verify(token, []).authenticated, false, token.slice(0, 40));
  });
});

test('logs user, target, program and result of a streaming request', () => {
  const { logger, records } = collectLogs(new VirtualClock());
  logAuditEvent(logger, {
    user: 'kubeling-admin',
    source: '127.0.0.1',
    what: 'pods/exec',
    namespace: 'shop',
    name: 'web',
    podUid: 'u1',
    container: 'app',
    program: 'x'.repeat(5_000),
    argumentCount: 2,
    result: '101',
    durationMs: 12.4,
  });
  const [record] = records.toArray();
  const { program, ...rest } = record?.fields ?? {};
  assert.deepEqual(rest, {
    user: 'kubeling-admin',
    source: '127.0.0.1',
    what: 'pods/exec',
    namespace: 'shop',
    name: 'web',
    podUid: 'u1',
    container: 'app',
    argumentCount: 2,
    result: '101',
    durationMs: 12,
  });
  assert.match(String(program), /^x+… \(5000 characters\)$/);
});
