import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSecureContext } from 'node:tls';
import { tlsProfile } from './tls-profile.ts';

const usual = { minVersion: '', cipherSuites: [], curves: [] };

test('defaults to TLS 1.2 with strong cipher suites', () => {
  const profile = tlsProfile(usual);
  assert.equal(profile.minVersion, 'TLSv1.2');
  assert.equal(profile.ecdhCurve, 'auto');
  assert.match(profile.ciphers, /^TLS_AES_128_GCM_SHA256:.*ECDHE-ECDSA-AES128-GCM-SHA256/);
  assert.doesNotMatch(profile.ciphers, /(?:^|:)AES|RC4|DES|SHA256$/);
  createSecureContext(profile);
});

test('recognizes the names of all TLS versions', () => {
  const names = ['VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13'];
  const versions = names.map((minVersion) => tlsProfile({ ...usual, minVersion }).minVersion);
  assert.deepEqual(versions, ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3']);
  assert.match(tlsProfile({ ...usual, minVersion: 'VersionTLS10' }).ciphers, /@SECLEVEL=0$/);
});

test('keeps the order of cipher suites, merges aliases, and always includes those of TLS 1.3', () => {
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

test('enables no cipher suites for TLS 1.2 when only TLS 1.3 suites are configured', () => {
  const profile = tlsProfile({ ...usual, cipherSuites: ['TLS_AES_128_GCM_SHA256'] });
  assert.doesNotMatch(profile.ciphers, /ECDHE/);
  createSecureContext(profile);
});

test('reports unsupported cipher suites, and fails only when none is left', () => {
  const weak = 'TLS_RSA_WITH_RC4_128_SHA';
  const mixed = tlsProfile({ ...usual, cipherSuites: [weak, 'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256'] });
  assert.deepEqual(mixed.unavailable, [weak]);
  createSecureContext(mixed);
  assert.throws(() => tlsProfile({ ...usual, cipherSuites: [weak] }), { code: 'TLS_SETTINGS' });
});

test('keeps the configured order of curves', () => {
  const profile = tlsProfile({ ...usual, curves: [29, 23, 4588] });
  assert.equal(profile.ecdhCurve, 'X25519:P-256:X25519MLKEM768');
  createSecureContext(profile);
});

test('lists all unknown TLS settings in one error', () => {
  assert.throws(() => tlsProfile({ minVersion: 'SSLv3', cipherSuites: ['NULL', 'toString'], curves: [1] }), {
    code: 'TLS_SETTINGS',
    message: /"SSLv3".*"NULL".*"toString".*curve 1/,
  });
});
