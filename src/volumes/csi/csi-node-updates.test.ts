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
  it('volume limits are polled at the period in the CSIDriver object', async () => {
    await using environment = new World();
    environment.updates.hint();
    await environment.clock.advance(0);
    assert.deepEqual(environment.asked, []);
    await environment.clock.advance(125_000);
    assert.deepEqual(environment.asked, ['a', 'a', 'a', 'a']);
    environment.periods = { b: 20 };
    await environment.clock.advance(60_000);
    const before = environment.asked.length;
    await environment.clock.advance(60_000);
    assert.deepEqual(environment.asked.slice(before), ['b', 'b', 'b']);
  });

  it('volume limits of a registered driver are polled immediately when a failed attach shows that its limit is wrong', async () => {
    await using environment = new World();
    environment.periods = {};
    environment.updates.refreshSoon('b');
    environment.updates.refreshSoon('gone');
    await environment.clock.advance(0);
    await environment.clock.advance(120_000);
    assert.deepEqual(environment.asked, ['b']);
  });

  it('a CSI driver that fails or does not respond does not delay the polls of other drivers', async () => {
    await using environment = new World();
    environment.periods = { a: 10, b: 10 };
    environment.update = (name, signal) =>
      name === 'a' ? untilAborted(signal) : Promise.reject(new Error('no'));
    environment.updates.hint();
    await environment.clock.advance(45_000);
    assert.deepEqual(environment.asked, ['a', 'b', 'b', 'b', 'b']);
    assert.equal(environment.logs.records.toArray().length, 4);
  });
});
