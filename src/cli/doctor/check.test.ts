import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fakeMachine, healthy } from '../../../test/fakes/machine.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { cancelledError, realClock } from '../../lib/index.ts';
import { type Check, examine, ok } from './check.ts';

const patient = { machine: fakeMachine(healthy), dataDirectory: '/data' };
const fine: Check = { name: 'fine', observe: async () => [ok('well')] };
const stuck: Check = { name: 'stuck', observe: () => new Promise(() => {}) };

describe('examine runs the checks of doctor', () => {
  it('warns about a check that never returns, and reports the findings in the order of the checks', async () => {
    const clock = new VirtualClock();
    const pending = examine([stuck, fine], patient, clock, new AbortController().signal);
    await clock.advance(10_000);
    const findings = await pending;
    assert.deepEqual(
      findings.map(({ check, severity }) => [check, severity]),
      [
        ['stuck', 'warn'],
        ['fine', 'ok'],
      ],
    );
    assert.match(findings[0]?.finding ?? '', /within 10000 ms/);
    assert.equal(clock.pendingTimers, 0);
  });

  it('rejects with the abort reason when it is interrupted', async () => {
    const controller = new AbortController();
    const pending = examine([stuck], patient, realClock(), controller.signal);
    controller.abort(cancelledError('SIGINT received'));
    await assert.rejects(pending, { code: 'CANCELLED' });
  });
});
