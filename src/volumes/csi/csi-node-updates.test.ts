import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs, untilAborted } from '../../lib/index.ts';
import { CsiNodeUpdates } from './csi-node-updates.ts';

class World implements AsyncDisposable {
  readonly clock = new VirtualClock();
  readonly logs = collectLogs(this.clock);
  readonly end = new AbortController();
  readonly asked: string[] = [];
  names: string[] = ['a', 'b'];
  periods: Record<string, number> = { a: 30 };
  readonly updates: CsiNodeUpdates;
  update: (name: string, signal: AbortSignal) => Promise<void> = async () => {};
  readonly #running: Promise<void>;

  constructor() {
    this.updates = new CsiNodeUpdates({
      clock: this.clock,
      logger: this.logs.logger,
      api: {
        driver: async (name) => ({ spec: { nodeAllocatableUpdatePeriodSeconds: this.periods[name] } }),
      },
      drivers: {
        names: () => this.names,
        update: async (name, signal) => {
          this.asked.push(name);
          await this.update(name, signal);
        },
      },
    });
    this.#running = this.updates.run(this.end.signal).catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.end.abort(new Error('over'));
    await this.#running;
  }
}

describe('volume limits of CSI drivers', () => {
  it('are polled at the period of the CSIDriver object', async () => {
    await using world = new World();
    world.updates.hint();
    await world.clock.advance(0);
    assert.deepEqual(world.asked, []);
    await world.clock.advance(125_000);
    assert.deepEqual(world.asked, ['a', 'a', 'a', 'a']);
    world.periods = { b: 20 };
    await world.clock.advance(60_000);
    const before = world.asked.length;
    await world.clock.advance(60_000);
    assert.deepEqual(world.asked.slice(before), ['b', 'b', 'b']);
  });

  it('are polled immediately for registered drivers when a limit proves wrong', async () => {
    await using world = new World();
    world.periods = {};
    world.updates.refreshSoon('b');
    world.updates.refreshSoon('gone');
    await world.clock.advance(0);
    await world.clock.advance(120_000);
    assert.deepEqual(world.asked, ['b']);
  });

  it('are polled independently of drivers that fail or do not respond', async () => {
    await using world = new World();
    world.periods = { a: 10, b: 10 };
    world.update = (name, signal) => (name === 'a' ? untilAborted(signal) : Promise.reject(new Error('no')));
    world.updates.hint();
    await world.clock.advance(45_000);
    assert.deepEqual(world.asked, ['a', 'b', 'b', 'b', 'b']);
    assert.equal(world.logs.records.toArray().length, 4);
  });
});
