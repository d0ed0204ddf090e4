import { test } from 'node:test';
import { EventRounds } from './event-rounds.ts';

test('an exit is handled by its event long before the next relist of all pods; without events all pods are relisted every second', {
  timeout: 300_000,
}, async (t) => {
  await EventRounds.run({ exits: 4, until: 'cut', tell: (text) => t.diagnostic(text) });
});
