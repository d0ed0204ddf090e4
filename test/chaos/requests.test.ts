import { test } from 'node:test';
import { RequestRounds } from './request-rounds.ts';

test('two thousand requests for anything are answered, none fails, and what was kept is there afterwards', {
  timeout: 300_000,
}, async (t) => {
  await RequestRounds.run({ requests: 2_000, seed: 1, tell: (text) => t.diagnostic(text) });
});
