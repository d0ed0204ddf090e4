import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noCluster } from '../cluster/programs.ts';
import { CertificateRounds } from './certificate-rounds.ts';

test('both certificates of a node are rotated while a log is followed and new requests are sent', {
  skip: noCluster(),
  timeout: 600_000,
}, async (t) => {
  // The signer dates certificates five minutes back: those with a validity of two more minutes are
  // due soon.
  const report = await CertificateRounds.run({
    rotations: 1,
    signedFor: '2m',
    tell: (text) => t.diagnostic(text),
  });
  assert.ok(report.client >= 2 && report.server >= 2);
});
