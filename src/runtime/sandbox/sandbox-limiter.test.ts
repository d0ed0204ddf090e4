import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { type CpuTimes, parseCpuTimes, SandboxLimiter } from './sandbox-limiter.ts';

const signal = new AbortController().signal;

/** Creates a limiter for two simulated CPUs, whose idle time the test sets. */
function rigOf() {
  const clock = new VirtualClock();
  const machine = { idle: 0 as number | undefined };
  let times: CpuTimes = { idle: 0, total: 0 };
  let lastMs = 0;
  const cpuTimes = async () => {
    if (machine.idle === undefined) throw new Error('no such file');
    const passed = clock.monotonicMs() - lastMs;
    lastMs = clock.monotonicMs();
    times = { idle: times.idle + machine.idle * passed, total: times.total + 2 * passed };
    return times;
  };
  const turns = new SandboxLimiter({ clock, processors: 2, cpuTimes });
  const begun: number[] = [];
  const take = async (who: number, until = signal) => {
    const turn = await turns.take(until);
    begun.push(who);
    return turn;
  };
  return { clock, machine, turns, begun, take };
}

const upTo = (count: number) => Array.from({ length: count }, (_, at) => at);

describe('limit of concurrent sandbox creations', () => {
  it('starts a few sandbox creations at a time on a busy machine, in order of request', async () => {
    const { clock, turns, begun, take } = rigOf();
    const all = upTo(7).map((who) => take(who));
    await clock.advance(1_000);
    assert.deepEqual(begun, [0, 1, 2, 3]);
    assert.equal(turns.isFull, true);
    (await all[2])?.[Symbol.dispose]();
    await clock.advance(1);
    assert.deepEqual(begun, [0, 1, 2, 3, 4]);
    for (const turn of await Promise.all([all[0], all[1], all[3], all[4]])) turn?.[Symbol.dispose]();
    await clock.advance(1);
    assert.deepEqual(begun, upTo(7));
    for (const turn of await Promise.all(all)) turn[Symbol.dispose]();
    assert.equal(turns.isFull, false);
    await clock.advance(100);
    assert.equal(clock.pendingTimers, 0);
  });

  it('starts more sandbox creations while CPUs are idle, or while CPU usage is unknown', async () => {
    const { clock, machine, begun, take } = rigOf();
    machine.idle = 1;
    for (const who of upTo(12)) void take(who);
    await clock.advance(250);
    assert.equal(begun.length, 6, 'from the second sample on, two at a time');
    machine.idle = 0.2;
    await clock.advance(300);
    assert.equal(begun.length, 6);
    machine.idle = undefined;
    await clock.advance(100);
    assert.equal(begun.length, 8);
  });

  it('releases the slot of a sandbox creation that takes too long', async () => {
    const { clock, begun, take } = rigOf();
    for (const who of upTo(9)) void take(who);
    await clock.advance(2_000);
    assert.equal(begun.length, 8);
    await clock.advance(2_000);
    assert.equal(begun.length, 9);
  });

  it('a cancelled waiter leaves the queue of sandbox creations', async () => {
    const { clock, begun, take } = rigOf();
    const leaves = new AbortController();
    const held = await Promise.all(upTo(4).map((who) => take(who)));
    const gone = take(4, leaves.signal);
    void take(5);
    leaves.abort(new Error('the pod is terminating'));
    await assert.rejects(gone, /the pod is terminating/);
    held[0]?.[Symbol.dispose]();
    await clock.advance(1);
    assert.deepEqual(begun, [0, 1, 2, 3, 5]);
  });

  it('CPU times are parsed from /proc/stat', () => {
    const text = 'cpu  10 1 5 70 4 1 2 3 6 1\ncpu0 10 1 5 70 4 1 2 3 6 1\nintr 9\n';
    assert.deepEqual(parseCpuTimes(text), { idle: 74, total: 96 });
    assert.throws(() => parseCpuTimes('no CPU times'), /no line with CPU times/);
  });
});
