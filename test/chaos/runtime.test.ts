import { test } from 'node:test';
import { RuntimeRounds } from './runtime-rounds.ts';

test('pods survive the kill and downtime of containerd, it is reported, and recovery is automatic', {
  timeout: 300_000,
}, async (t) => {
  await RuntimeRounds.run({ pods: 5, kills: 1, absenceMs: 5_000, tell: (text) => t.diagnostic(text) });
});
