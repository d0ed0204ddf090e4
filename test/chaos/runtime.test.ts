import { test } from 'node:test';
import { RuntimeRounds } from './runtime-rounds.ts';

test('pods survive the kill and downtime of containerd, kubeling reports the downtime, and recovers automatically', {
  timeout: 300_000,
}, async (t) => {
  await RuntimeRounds.run({ pods: 5, kills: 1, absenceMs: 5_000, tell: (text) => t.diagnostic(text) });
});
