import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { abortable, cancelledError, collectLogs, seededRandom } from '../lib/index.ts';
import { Background, type BackgroundLoop } from './background.ts';

function rig() {
  const clock = new VirtualClock();
  const { logger, records } = collectLogs(clock);
  const background = new Background({ clock, random: seededRandom(1), logger });
  const messages = () => [...records].map(({ message }) => message);
  return { clock, background, messages };
}

const untilAborted = (signal: AbortSignal) =>
  abortable(new Promise<void>(() => {}), signal).catch((error) => {
    if (!signal.aborted) throw error;
  });

/** A loop that ends in these ways one after the other, and then runs on. */
function endsWith(ends: (() => Promise<void>)[]): BackgroundLoop & { begun: number } {
  const loop = {
    begun: 0,
    run: (signal: AbortSignal) => {
      const end = ends[loop.begun++];
      return end === undefined ? untilAborted(signal) : end();
    },
  };
  return loop;
}

test('a loop that ends or fails is told, shown while it is down, and begun again ever later', async () => {
  const { clock, background, messages } = rig();
  const end = new AbortController();
  const loop = endsWith([
    async () => {
      throw new Error('a bug');
    },
    async () => {},
  ]);
  const other = endsWith([]);
  const loops = { again: { file: loop }, once: { other } };
  const running = background.beside(loops, untilAborted, end.signal);
  await clock.advance(999);
  assert.equal(background.problem(), 'the loop file is down: a bug');
  await clock.advance(1);
  assert.equal(background.problem(), 'the loop file is down: The loop file has ended though nobody ended it');
  await clock.advance(2_000);
  assert.equal(background.problem(), undefined);
  const [ended, again] = ['A background loop has ended', 'A background loop is begun again'];
  assert.deepEqual(messages(), [ended, again, ended, again]);
  assert.deepEqual([loop.begun, other.begun], [3, 1]);
  end.abort(cancelledError('enough'));
  await running;
  assert.equal(clock.pendingTimers, 0);
  assert.equal(messages().length, 4, 'an end that was asked for is not told');
});

test('a loop that cannot be begun again ends the work and the other loops, and says why', async () => {
  const { clock, background } = rig();
  const bug = new Error('a bug');
  const loop: BackgroundLoop = {
    run: async (signal) => {
      await clock.sleep(5_000, signal);
      throw bug;
    },
  };
  const ended: string[] = [];
  const noting = (name: string) => (signal: AbortSignal) =>
    untilAborted(signal).then(() => void ended.push(name));
  const loops = { again: { file: { run: noting('file') } }, once: { pleg: loop } };
  const running = background.beside(loops, noting('work'), new AbortController().signal);
  const failed = assert.rejects(running, bug);
  await clock.advance(5_000);
  await failed;
  assert.deepEqual(ended.toSorted(), ['file', 'work']);
  assert.equal(background.problem(), 'the loop pleg is down: a bug');
  assert.equal(clock.pendingTimers, 0);
});

test('work that ends or fails ends the loops, also those that wait to be begun again', async () => {
  const { clock, background } = rig();
  const failing = endsWith([() => Promise.reject(new Error('a bug'))]);
  const never = new AbortController().signal;
  const loops = { again: { failing }, once: { other: endsWith([]) } };
  await background.beside(loops, async () => {}, never);
  const failed = background.beside(
    { again: { one: endsWith([]) }, once: {} },
    async () => {
      throw new Error('the work failed');
    },
    never,
  );
  await assert.rejects(failed, /the work failed/);
  assert.equal(clock.pendingTimers, 0);
});
