import { test } from 'node:test';
import { UpdateRounds } from './update-rounds.ts';

test('every update of a config map, a secret and a label reaches the files of a running pod completely', {
  timeout: 300_000,
}, async (t) => {
  const report = await UpdateRounds.run({ updates: 8, tell: (text) => t.diagnostic(text) });
  t.diagnostic(JSON.stringify(report));
});
