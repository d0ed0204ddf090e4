import { test } from 'node:test';
import { RequestRounds } from './request-rounds.ts';

test('two thousand requests for anything are answered, none fails, and what was kept is there afterwards', {
  timeout: 300_000,
}, async (t) => {
  // The promise is 100 ms; the limit leaves room for a machine that is slow or busy.
  await RequestRounds.run({
    requests: 2_000,
    seed: 1,
    mostHoldMs: 1_000,
    tell: (text) => t.diagnostic(text),
  });
});
