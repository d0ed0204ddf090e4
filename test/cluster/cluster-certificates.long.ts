import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CertificateRounds } from '../chaos/certificate-rounds.ts';
import { noCluster } from './programs.ts';

test('rotates certificates with a validity of ten minutes three times without failed requests while a log is followed', {
  skip: noCluster(),
  timeout: 5_400_000,
}, async (t) => {
  const report = await CertificateRounds.run({
    rotations: 3,
    signedFor: '10m',
    tell: (text) => t.diagnostic(text),
  });
  assert.ok(report.client > 3 && report.server > 3);
});
