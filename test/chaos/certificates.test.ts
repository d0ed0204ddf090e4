import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noCluster } from '../cluster/programs.ts';
import { CertificateRounds } from './certificate-rounds.ts';

test('both certificates of a node are rotated while a log is followed and new requests are sent', {
  skip: noCluster(),
  timeout: 600_000,
}, async (t) => {
  // The signer sets notBefore to five minutes ago, so a certificate that expires in two minutes is
  // already near the end of its validity and is rotated soon.
  const report = await CertificateRounds.run({
    rotations: 1,
    signedFor: '2m',
    tell: (text) => t.diagnostic(text),
  });
  assert.ok(report.client >= 2 && report.server >= 2);
});
