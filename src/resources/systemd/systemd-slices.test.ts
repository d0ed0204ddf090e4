import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { KubelingError } from '../../lib/index.ts';
import type { DbusCall, DbusMessage, DbusValue } from '../../protocols/dbus/index.ts';
import { type SystemdBus, SystemdSlices } from './systemd-slices.ts';

const { signal } = new AbortController();
const slice = { unit: 'kubepods-podx.slice', parent: 'kubepods.slice', version: 2 } as const;

type Answer = (call: DbusCall, bus: ScriptedBus) => Promise<readonly DbusValue[]> | readonly DbusValue[];

/**
 * A fake message bus that returns the configured replies, and an empty reply to all other calls.
 */
class ScriptedBus implements SystemdBus {
  readonly calls: DbusCall[] = [];
  readonly matches: string[] = [];
  readonly #answers: Readonly<Record<string, Answer>>;
  readonly #listeners = new Set<(message: DbusMessage) => void>();
  readonly #ended = Promise.withResolvers<void>();
  readonly closed = this.#ended.promise;

  constructor(responses: Readonly<Record<string, Answer>>) {
    this.#answers = responses;
  }

  get members(): readonly string[] {
    return this.calls.map(({ member }) => member);
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  async call(call: DbusCall): Promise<readonly DbusValue[]> {
    this.calls.push(call);
    if (call.member === 'Get') return [{ signature: 's', value: '252.39-1~deb12u1' }];
    return (await this.#answers[call.member]?.(call, this)) ?? [];
  }

  async addMatch(rule: string): Promise<void> {
    this.matches.push(rule);
  }

  onMessage(listener: (message: DbusMessage) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  removed(job: string, unit: string, result: string): void {
    const from = { interface: 'org.freedesktop.systemd1.Manager', member: 'JobRemoved' };
    const message = {
      type: 'signal' as const,
      serial: 1,
      ...from,
      signature: 'uoss',
      body: [7, job, unit, result],
    };
    for (const listener of this.#listeners) listener(message);
  }

  [Symbol.dispose](): void {
    this.#ended.resolve();
  }
}

function refuse(name: string): never {
  throw new KubelingError('DBUS_REFUSED', `The fake message bus rejects the call with ${name}`, {
    details: { name },
  });
}

/** Replies with the systemd job and reports the result of the job afterwards. */
const later =
  (result: string): Answer =>
  ({ body = [] }, bus) => {
    setImmediate(() => bus.removed('/job/1', String(body[0]), result));
    return ['/job/1'];
  };

function aSystemd(responses: Readonly<Record<string, Answer>>) {
  const clock = new VirtualClock();
  const buses: ScriptedBus[] = [];
  const slices = new SystemdSlices({
    clock,
    openBus: async () => {
      const bus = new ScriptedBus(responses);
      buses.push(bus);
      return bus;
    },
  });
  return { clock, buses, slices };
}

describe('starting a slice', () => {
  it('start resolves when the systemd job has finished', async () => {
    const { slices, buses, clock } = aSystemd({ StartTransientUnit: () => ['/job/1'] });
    let isOver = false;
    const starting = slices.start(slice, signal).then(() => {
      isOver = true;
    });
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    while (!buses[0]?.members.includes('StartTransientUnit')) await turn();
    buses[0]?.removed('/job/1', 'other.slice', 'done');
    buses[0]?.removed('/job/2', slice.unit, 'done');
    await turn();
    assert.equal(isOver, false);
    buses[0]?.removed('/job/1', slice.unit, 'done');
    await starting;
    const { signature, body = [] } = buses[0]?.calls.at(-1) ?? {};
    assert.equal(signature, 'ssa(sv)a(sa(sv))');
    assert.deepEqual([body[0], body[1], body[3]], [slice.unit, 'replace', []]);
    assert.deepEqual([buses[0]?.listeners, clock.pendingTimers], [0, 0]);
  });

  it('start handles a job that finishes before the reply to the call', async () => {
    const { slices } = aSystemd({
      StartTransientUnit: (_call, bus) => {
        bus.removed('/job/1', slice.unit, 'done');
        return ['/job/1'];
      },
    });
    await slices.start(slice, signal);
  });

  it('start also starts a unit that exists already, because the unit may be stopped', async () => {
    const exists = { StartTransientUnit: () => refuse('org.freedesktop.systemd1.UnitExists') };
    const { slices, buses } = aSystemd({ ...exists, StartUnit: later('done') });
    await slices.start(slice, signal);
    assert.deepEqual(buses[0]?.calls.at(-1)?.body, [slice.unit, 'replace']);
    const { slices: failing } = aSystemd({ ...exists, StartUnit: later('failed') });
    await assert.rejects(failing.start(slice, signal), /the systemd job ended with "failed"/);
  });

  it('start rejects with the unit and the result of a failed job', async () => {
    const { slices } = aSystemd({ StartTransientUnit: later('dependency') });
    await assert.rejects(slices.start(slice, signal), {
      code: 'SYSTEMD_UNIT',
      message:
        'Cannot start the unit kubepods-podx.slice by systemd: the systemd job ended with "dependency"',
    });
  });

  it('start rejects with the error of systemd', async () => {
    const { slices } = aSystemd({
      StartTransientUnit: () => refuse('org.freedesktop.DBus.Error.InvalidArgs'),
    });
    await assert.rejects(
      slices.start(slice, signal),
      /unit kubepods-podx\.slice .*rejects the call with .*InvalidArgs/,
    );
  });

  it('start times out if the job does not finish', async () => {
    const { slices, clock, buses } = aSystemd({ StartTransientUnit: () => ['/job/1'] });
    const failed = assert.rejects(slices.start(slice, signal), /Cannot have it done within 30000 ms/);
    await clock.advance(30_000);
    await failed;
    assert.equal(buses[0]?.listeners, 0);
  });

  it('an aborted signal cancels the start of a slice', async () => {
    const { slices, buses } = aSystemd({ StartTransientUnit: () => ['/job/1'] });
    const stop = new AbortController();
    const starting = slices.start(slice, stop.signal);
    stop.abort(new Error('the caller has aborted the start'));
    await assert.rejects(starting, /^Error: the caller has aborted the start$/);
    assert.equal(buses[0]?.listeners ?? 0, 0);
  });
});

describe('setting slice properties', () => {
  it('set sends all properties to systemd in one call, for the runtime only, and makes no call without values', async () => {
    const { slices, buses } = aSystemd({});
    await slices.set(slice, { cpuShares: 2 }, signal);
    await slices.set(slice, {}, signal);
    assert.deepEqual(buses[0]?.members, ['Subscribe', 'Get', 'SetUnitProperties']);
    const { signature, body } = buses[0]?.calls.at(-1) ?? {};
    assert.equal(signature, 'sba(sv)');
    assert.deepEqual(body, [slice.unit, true, [['CPUWeight', { signature: 't', value: 1n }]]]);
  });
});

describe('stopping a slice', () => {
  it('stop waits for the job, whatever its result', async () => {
    const { slices, buses } = aSystemd({ StopUnit: later('timeout') });
    await slices.stop(slice, signal);
    assert.deepEqual(buses[0]?.calls.at(-1)?.body, [slice.unit, 'replace']);
  });

  it('stop succeeds for a missing unit', async () => {
    const { slices } = aSystemd({ StopUnit: () => refuse('org.freedesktop.systemd1.NoSuchUnit') });
    await slices.stop(slice, signal);
  });

  it('stop fails on errors other than a missing unit', async () => {
    const { slices } = aSystemd({ StopUnit: () => refuse('org.freedesktop.systemd1.UnitExists') });
    await assert.rejects(slices.stop(slice, signal), /Cannot stop the unit kubepods-podx\.slice by systemd/);
  });
});

describe('the connection to systemd', () => {
  it('all calls share one connection to systemd, on which the manager subscribes to job signals once', async () => {
    const { slices, buses } = aSystemd({ StartTransientUnit: later('done'), StopUnit: later('done') });
    const other = { ...slice, unit: 'other.slice' };
    await Promise.all([slices.start(slice, signal), slices.start(other, signal), slices.stop(other, signal)]);
    assert.equal(buses.length, 1);
    assert.deepEqual(buses[0]?.matches, [
      "type='signal',sender='org.freedesktop.systemd1',interface='org.freedesktop.systemd1.Manager',member='JobRemoved'",
    ]);
    assert.equal(buses[0]?.members.filter((member) => member === 'Subscribe').length, 1);
  });

  it('a lost connection to systemd rejects waiting calls, and the next call connects again', async () => {
    let isFirst = true;
    const { slices, buses } = aSystemd({
      StartTransientUnit: (call, bus) => {
        if (!isFirst) return later('done')(call, bus);
        isFirst = false;
        setImmediate(() => bus[Symbol.dispose]());
        return ['/job/1'];
      },
    });
    await assert.rejects(slices.start(slice, signal), /connection to the message bus was lost/);
    await slices.start(slice, signal);
    assert.equal(buses.length, 2);
  });

  it('connects to systemd again after a failure, and one aborted caller does not cancel the connection attempt of the other callers', async () => {
    const clock = new VirtualClock();
    const opening = Promise.withResolvers<SystemdBus>();
    let opened = 0;
    const slices = new SystemdSlices({
      clock,
      openBus: () =>
        ++opened === 1 ? Promise.reject(new Error('connect ENOENT /run/bus')) : opening.promise,
    });
    await assert.rejects(slices.set(slice, { cpuShares: 2 }, signal), {
      code: 'SYSTEMD_UNIT',
      message:
        /^Cannot set properties of the unit kubepods-podx\.slice by systemd: Cannot connect to systemd.*: connect ENOENT \/run\/bus; .*SystemdCgroup = false/,
    });
    const stop = new AbortController();
    const givenUp = slices.set(slice, { cpuShares: 2 }, stop.signal);
    const retained = slices.set(slice, { cpuShares: 2 }, signal);
    stop.abort(new Error('the first caller has aborted'));
    await assert.rejects(givenUp, /the first caller has aborted/);
    opening.resolve(new ScriptedBus({}));
    await retained;
    assert.equal(opened, 2);
  });

  it('disposal closes the connection to systemd', async () => {
    const { slices, buses } = aSystemd({});
    await slices.set(slice, { cpuShares: 2 }, signal);
    slices[Symbol.dispose]();
    await buses[0]?.closed;
    await slices.set(slice, { cpuShares: 2 }, signal);
    assert.equal(buses.length, 2);
  });
});
