import { test } from 'node:test';
import { KillRounds } from './kill-rounds.ts';

test('kubeling killed at random moments starts no container twice and loses none', {
  timeout: 300_000,
}, async (t) => {
  const seed = Number(process.env['KUBELING_SEED'] ?? 1);
  t.diagnostic(`seed ${seed}`);
  const report = await KillRounds.run({ kills: 6, seed, tell: (text) => t.diagnostic(text) });
  t.diagnostic(JSON.stringify(report));
});
