import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { podUid } from '../../pods/index.ts';
import { KillRecord } from './kill-record.ts';

test('the remaining seconds of a new kill equal its grace period, at any fraction of a second of the clock', async () => {
  for (const fraction of [0.1, 0.3, 0.7, 0.94104623259]) {
    const clock = new VirtualClock();
    await clock.advance(6_839 + fraction);
    using record = new KillRecord(podUid('pod'), clock, 30);
    assert.equal(record.secondsLeft, 30);
    await clock.advance(1);
    assert.equal(record.secondsLeft, 30);
    await clock.advance(1_000);
    assert.equal(record.secondsLeft, 29);
  }
});
