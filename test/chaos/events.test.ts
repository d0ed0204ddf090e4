import { test } from 'node:test';
import { EventRounds } from './event-rounds.ts';

test('an exit is answered by its event long before the next look at all pods; without events all are looked at every second', {
  timeout: 300_000,
}, async (t) => {
  await EventRounds.run({ exits: 4, until: 'cut', tell: (text) => t.diagnostic(text) });
});
