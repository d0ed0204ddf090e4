import { test } from 'node:test';
import { VolumeRounds } from './volume-rounds.ts';

test('kubeling killed during mounts leaves no mounts behind and deletes no foreign files', {
  timeout: 300_000,
}, async (t) => {
  const seed = Number(process.env['KUBELING_SEED'] ?? 1);
  t.diagnostic(`seed ${seed}`);
  const report = await VolumeRounds.run({ kills: 3, seed, tell: (text) => t.diagnostic(text) });
  t.diagnostic(JSON.stringify(report));
});
