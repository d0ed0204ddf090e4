import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs } from './index.ts';
import { rateLimitedErrors } from './rate-limited.ts';

test('logs a number of errors in each period, and how many were left out', async () => {
  const clock = new VirtualClock();
  const logs = collectLogs(clock);
  const limited = rateLimitedErrors(logs.logger, clock, { records: 2, perMs: 1_000 });
  for (let count = 0; count < 100; count++) limited.error('Failed', new Error('bad'), { count });
  assert.equal([...logs.records].length, 2);
  await clock.advance(1_000);
  limited.error('Failed', new Error('bad'));
  limited.error('Failed', new Error('bad'));
  assert.deepEqual(
    [...logs.records].map(({ fields }) => fields?.['notLogged']),
    [undefined, undefined, 98, undefined],
  );
});
