import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { KubelingError, seededRandom } from '../../lib/index.ts';
import { VolumeOperations } from './volume-operations.ts';

const { signal } = new AbortController();

function createEnvironment() {
  const clock = new VirtualClock();
  const operations = new VolumeOperations({ clock, random: seededRandom(1) });
  const log: string[] = [];
  /** A fake operation that ends when the test releases it, or when it is aborted. */
  const hanging = (name: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const work = async (inner: AbortSignal) => {
      log.push(`${name} begins`);
      inner.addEventListener('abort', () => reject(inner.reason), { once: true });
      await promise;
    };
    return { operation: { name, what: `${name}ing`, work }, end: resolve, fail: reject };
  };
  return { clock, operations, log, hanging };
}

const settled = (promise: Promise<void>) => {
  const reported: { error?: unknown; isDone?: boolean } = {};
  promise.then(
    () => {
      reported.isDone = true;
    },
    (error: unknown) => {
      reported.error = error;
    },
  );
  return reported;
};

describe('an operation on a volume', () => {
  it('continues a volume operation after its caller timed out, and lets the next call join it', async () => {
    const { clock, operations, log, hanging } = createEnvironment();
    const { operation, end } = hanging('mount');
    const first = settled(operations.run('/a', operation, signal));
    await clock.advance(10_000);
    assert.equal((first.error as KubelingError).message, 'mounting has not ended after 10 s, and continues');
    assert.equal((first.error as KubelingError).details['retryAtMs'], clock.monotonicMs() + 1_000);
    // Operations on other paths run independently.
    const other = hanging('mount');
    other.end();
    await operations.run('/b', other.operation, signal);
    const second = operations.run('/a', operation, signal);
    end();
    await second;
    assert.deepEqual(log, ['mount begins', 'mount begins']);
    assert.equal(operations.size, 0);
    assert.equal(clock.pendingTimers, 0);
  });

  it('does not retry a failed volume operation before its back-off has passed', async () => {
    const { clock, operations } = createEnvironment();
    let attempts = 0;
    const work = async () => {
      attempts++;
      throw new KubelingError('VOLUME_UNUSABLE', 'no such server');
    };
    const operation = { name: 'mount', what: 'mounting', work };
    const run = () => operations.run('/a', operation, signal);
    for (const waitMs of [500, 1_000, 2_000]) {
      await assert.rejects(run(), /^KubelingError: no such server$/);
      await assert.rejects(run(), ({ details }: KubelingError) => {
        return details['retryAtMs'] === clock.monotonicMs() + waitMs;
      });
      await clock.advance(waitMs);
    }
    assert.equal(attempts, 3);
    // Another operation on the same path may start immediately.
    await operations.run('/a', { name: 'unmount', what: '', work: async () => {} }, signal);
    assert.equal(operations.size, 0);
  });

  it('aborts a running volume operation when a different operation is requested for its path, and starts the new operation after the aborted one has ended', async () => {
    const { operations, log, hanging } = createEnvironment();
    const mount = hanging('mount');
    const mounting = settled(operations.run('/a', mount.operation, signal));
    await Promise.resolve();
    const unmount = hanging('unmount');
    unmount.end();
    await operations.run('/a', unmount.operation, signal);
    assert.deepEqual(log, ['mount begins', 'unmount begins']);
    assert.match(String(mounting.error), /Another operation was requested for the path/);
    assert.equal(operations.size, 0);
  });

  it('blocks another operation on the path until the aborted one has ended', async () => {
    const { clock, operations } = createEnvironment();
    const { promise, resolve } = Promise.withResolvers<void>();
    const stuck = { name: 'mount', what: 'mounting', work: () => promise };
    const mounting = settled(operations.run('/a', stuck, signal));
    let begun = 0;
    const unmount = {
      name: 'unmount',
      what: 'unmounting',
      work: async () => {
        begun++;
      },
    };
    const unmounting = settled(operations.run('/a', unmount, signal));
    await clock.advance(10_000);
    assert.match(String(unmounting.error), /mounting has not ended after 10 s/);
    assert.equal(begun, 0);
    resolve();
    await operations.run('/a', unmount, signal);
    assert.equal(begun, 1);
    assert.ok(mounting.error);
  });

  it('continues a volume operation after its caller was cancelled', async () => {
    const { clock, operations, hanging } = createEnvironment();
    const { operation, fail } = hanging('mount');
    const controller = new AbortController();
    const requested = settled(operations.run('/a', operation, controller.signal));
    await Promise.resolve();
    controller.abort(new Error('the pod was deleted'));
    await clock.advance(1);
    assert.match(String(requested.error), /the pod was deleted/);
    assert.equal(operations.size, 1);
    fail(new Error('refused'));
    await clock.advance(1);
    await assert.rejects(operations.run('/a', operation, signal), /refused/);
    operations.forget('/a');
    assert.equal(operations.size, 0);
  });
});
