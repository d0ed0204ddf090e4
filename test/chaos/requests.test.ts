import { test } from 'node:test';
import { RequestRounds } from './request-rounds.ts';

test('two thousand random requests get responses, none fails, and stored objects exist afterwards', {
  timeout: 300_000,
}, async (t) => {
  // The goal is 100 ms; the limit allows for a slow or busy machine.
  await RequestRounds.run({
    requests: 2_000,
    seed: 1,
    mostHoldMs: 1_000,
    tell: (text) => t.diagnostic(text),
  });
});
