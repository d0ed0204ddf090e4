import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSecureContext } from 'node:tls';
import { tlsProfile } from './tls-profile.ts';

const usual = { minVersion: '', cipherSuites: [], curves: [] };

test('unless told otherwise it is TLS 1.2 with strong suites', () => {
  const profile = tlsProfile(usual);
  assert.equal(profile.minVersion, 'TLSv1.2');
  assert.equal(profile.ecdhCurve, 'auto');
  assert.match(profile.ciphers, /^TLS_AES_128_GCM_SHA256:.*ECDHE-ECDSA-AES128-GCM-SHA256/);
  assert.doesNotMatch(profile.ciphers, /(?:^|:)AES|RC4|DES|SHA256$/);
  createSecureContext(profile);
});

test('every version is known by its name', () => {
  const names = ['VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13'];
  const versions = names.map((minVersion) => tlsProfile({ ...usual, minVersion }).minVersion);
  assert.deepEqual(versions, ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3']);
  assert.match(tlsProfile({ ...usual, minVersion: 'VersionTLS10' }).ciphers, /@SECLEVEL=0$/);
});

test('suites are taken in their order, old names and new for the same once, those of 1.3 always', () => {
  const { ciphers, unavailable } = tlsProfile({
    ...usual,
    cipherSuites: [
      'TLS_RSA_WITH_AES_256_GCM_SHA384',
      'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305',
      'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256',
    ],
  });
  const of13 = 'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256';
  assert.equal(ciphers, `${of13}:AES256-GCM-SHA384:ECDHE-RSA-CHACHA20-POLY1305`);
  assert.deepEqual(unavailable, []);
});

test('suites of 1.3 alone leave none for older versions', () => {
  const profile = tlsProfile({ ...usual, cipherSuites: ['TLS_AES_128_GCM_SHA256'] });
  assert.doesNotMatch(profile.ciphers, /ECDHE/);
  createSecureContext(profile);
});

test('what this machine cannot do is told, and only that is an error', () => {
  const weak = 'TLS_RSA_WITH_RC4_128_SHA';
  const mixed = tlsProfile({ ...usual, cipherSuites: [weak, 'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256'] });
  assert.deepEqual(mixed.unavailable, [weak]);
  createSecureContext(mixed);
  assert.throws(() => tlsProfile({ ...usual, cipherSuites: [weak] }), { code: 'TLS_SETTINGS' });
});

test('curves keep their order', () => {
  const profile = tlsProfile({ ...usual, curves: [29, 23, 4588] });
  assert.equal(profile.ecdhCurve, 'X25519:P-256:X25519MLKEM768');
  createSecureContext(profile);
});

test('everything that does not exist is named at once', () => {
  assert.throws(() => tlsProfile({ minVersion: 'SSLv3', cipherSuites: ['NULL', 'toString'], curves: [1] }), {
    code: 'TLS_SETTINGS',
    message: /"SSLv3".*"NULL".*"toString".*curve 1/,
  });
});
