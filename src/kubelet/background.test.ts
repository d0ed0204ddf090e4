import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { abortable, cancelledError, collectLogs, seededRandom } from '../lib/index.ts';
import { Background, type BackgroundLoop } from './background.ts';

function createHarness() {
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

/**
 * Returns a fake background loop: each of its runs ends with the next result in `ends`; when there
 * are no more results, a run waits for the abort.
 */
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

test('a loop that ended or failed is restarted with back-off, logged, and reported as a problem while it is down', async () => {
  const { clock, background, messages } = createHarness();
  const end = new AbortController();
  const loop = endsWith([
    async () => {
      throw new Error('a bug');
    },
    async () => {},
  ]);
  const other = endsWith([]);
  const loops = { restartable: { file: loop }, critical: { other } };
  const running = background.runBeside(loops, untilAborted, end.signal);
  await clock.advance(999);
  assert.equal(background.problem(), 'the loop file is down: a bug');
  await clock.advance(1);
  assert.equal(background.problem(), 'the loop file is down: Background loop file ended unexpectedly');
  await clock.advance(2_000);
  assert.equal(background.problem(), undefined);
  const [ended, again] = ['Background loop ended', 'Restarting background loop'];
  assert.deepEqual(messages(), [ended, again, ended, again]);
  assert.deepEqual([loop.begun, other.begun], [3, 1]);
  end.abort(cancelledError('enough'));
  await running;
  assert.equal(clock.pendingTimers, 0);
  assert.equal(messages().length, 4, 'an abort is not logged');
});

test('when a critical loop fails, the main work and the other loops end with the error of that loop', async () => {
  const { clock, background } = createHarness();
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
  const loops = { restartable: { file: { run: noting('file') } }, critical: { pleg: loop } };
  const running = background.runBeside(loops, noting('work'), new AbortController().signal);
  const failed = assert.rejects(running, bug);
  await clock.advance(5_000);
  await failed;
  assert.deepEqual(ended.toSorted(), ['file', 'work']);
  assert.equal(background.problem(), 'the loop pleg is down: a bug');
  assert.equal(clock.pendingTimers, 0);
});

test('ends all loops when the work ends or fails, including a loop that waits to be restarted', async () => {
  const { clock, background } = createHarness();
  const failing = endsWith([() => Promise.reject(new Error('a bug'))]);
  const never = new AbortController().signal;
  const loops = { restartable: { failing }, critical: { other: endsWith([]) } };
  await background.runBeside(loops, async () => {}, never);
  const failed = background.runBeside(
    { restartable: { one: endsWith([]) }, critical: {} },
    async () => {
      throw new Error('the work failed');
    },
    never,
  );
  await assert.rejects(failed, /the work failed/);
  assert.equal(clock.pendingTimers, 0);
});
