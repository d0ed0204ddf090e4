import { test } from 'node:test';
import { RuntimeRounds } from './runtime-rounds.ts';

test('containerd may be killed and stay away: pods run on, it is told, and recovery is automatic', {
  timeout: 300_000,
}, async (t) => {
  await RuntimeRounds.run({ pods: 5, kills: 1, absenceMs: 5_000, tell: (text) => t.diagnostic(text) });
});
