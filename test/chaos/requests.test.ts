import { test } from 'node:test';
import { RequestRounds } from './request-rounds.ts';

test('the API responds in time to two thousand random requests without failures, and keeps its stored objects', {
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
