import { test } from 'node:test';
import { UpRounds } from './up-rounds.ts';

test('kubeling up killed under writers and watchers loses no acknowledged write', {
  timeout: 300_000,
}, async (t) => {
  const seed = Number(process.env['KUBELING_SEED'] ?? 1);
  t.diagnostic(`seed ${seed}`);
  const report = await UpRounds.run({ kills: 2, seed, tell: (text) => t.diagnostic(text) });
  t.diagnostic(JSON.stringify(report));
});
