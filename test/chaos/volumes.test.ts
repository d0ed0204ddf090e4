import { test } from 'node:test';
import { VolumeRounds } from './volume-rounds.ts';

test('kubeling killed among mounts leaves none behind and deletes nothing of others', {
  timeout: 300_000,
}, async (t) => {
  const seed = Number(process.env['KUBELING_SEED'] ?? 1);
  t.diagnostic(`seed ${seed}`);
  const report = await VolumeRounds.run({ kills: 3, seed, tell: (text) => t.diagnostic(text) });
  t.diagnostic(JSON.stringify(report));
});
