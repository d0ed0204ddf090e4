import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { aPod } from '../../../test/fakes/pods.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs, seededRandom } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import {
  byShutdownGroup,
  NodeShutdown,
  type NodeShutdownDeps,
  type ShutdownSource,
  shutdownGroups,
  wholeSeconds,
} from './node-shutdown.ts';

const groups = [
  { priority: 0, seconds: 20 },
  { priority: 1_000, seconds: 10 },
];

function podOf(name: string, priority: number, graceSeconds?: number): Pod {
  const grace = graceSeconds === undefined ? {} : { terminationGracePeriodSeconds: graceSeconds };
  return aPod({ metadata: { name }, spec: { priority, ...grace } });
}

/** A node whose pods each take the given number of seconds to terminate; Infinity for never. */
function aNode(
  ends: Readonly<Record<string, number>>,
  pods: readonly Pod[],
  more: Partial<NodeShutdownDeps> = {},
) {
  const clock = new VirtualClock();
  const { logger, records } = collectLogs(clock);
  const story: string[] = [];
  const at = () => `${Math.round(clock.monotonicMs() / 1_000)} s:`;
  const shutdown = new NodeShutdown({
    clock,
    random: seededRandom(1),
    logger,
    groups,
    event: ({ reason, message }) => void story.push(`${at()} ${reason}: ${message}`),
    changed: () => void story.push(`${at()} ${shutdown.problem() ?? 'ready'}`),
    activePods: () => pods,
    terminatePod: async ({ metadata: { name } }, grace, signal) => {
      story.push(`${at()} end ${name} within ${grace}`);
      const seconds = ends[name] ?? 0;
      await clock.sleep(seconds === Number.POSITIVE_INFINITY ? 1e9 : seconds * 1_000, signal);
      story.push(`${at()} ended ${name}`);
    },
    reported: async (told) => void story.push(`${at()} told ${told.map(({ metadata }) => metadata.name)}`),
    ...more,
  });
  return { shutdown, clock, story, records };
}

const never = new AbortController().signal;

describe('graceful node shutdown', () => {
  it('terminates shutdown groups from low to high priority, and waits for each until its pods have stopped or its time has passed', async () => {
    const pods = [podOf('high', 2_000, 60), podOf('low', 0, 5), podOf('other', -1)];
    const { shutdown, clock, story } = aNode({ low: 3, other: 4, high: 2 }, pods);
    const ending = shutdown.terminatePods(never);
    await clock.advance(60_000);
    await ending;
    assert.deepEqual(story, [
      '0 s: Shutdown: Shutdown manager detected shutdown event',
      '0 s: node is shutting down',
      '0 s: end low within 5',
      '0 s: end other within 20',
      '3 s: ended low',
      '4 s: ended other',
      '4 s: told low,other',
      '4 s: end high within 10',
      '6 s: ended high',
      '6 s: told high',
    ]);
    assert.equal(shutdown.isShuttingDown, true);
  });

  it('waits no longer than configured for a hanging pod or an unavailable API server', async () => {
    const pods = [podOf('low', 0), podOf('high', 1_000)];
    const hang = (_pods: readonly Pod[], signal: AbortSignal) => clock.sleep(1e9, signal);
    const { shutdown, clock, story } = aNode(
      { low: Number.POSITIVE_INFINITY, high: Number.POSITIVE_INFINITY },
      pods,
      { reported: hang },
    );
    let isOver = false;
    const ending = shutdown.terminatePods(never).then(() => {
      isOver = true;
    });
    await clock.advance(31_900);
    assert.equal(isOver, false);
    await clock.advance(200);
    await ending;
    assert.deepEqual(story.slice(2), ['0 s: end low within 20', '20 s: end high within 10']);
    assert.equal(clock.pendingTimers, 0);
  });

  it('skips shutdown groups without pods', async () => {
    const { shutdown, clock, story } = aNode({}, [podOf('high', 1_000)]);
    const ending = shutdown.terminatePods(never);
    await clock.advance(10);
    await ending;
    assert.equal(story.at(-1), '0 s: told high');
  });
});

/** Announces the shutdowns that a test sets, and counts the held locks. */
class Announcer implements ShutdownSource {
  held = 0;
  opened: number[] = [];
  fails = false;
  isUnderWay = false;
  #news: ('begins' | 'cancelled' | undefined)[] = [];
  #wake = () => {};

  say(news: 'begins' | 'cancelled' | undefined): void {
    this.#news.push(news);
    this.#wake();
  }

  async open(delayMs: number) {
    this.opened.push(delayMs);
    if (this.fails) throw new Error('no listener');
    return {
      isUnderWay: async () => this.isUnderWay,
      hold: async () => {
        this.held++;
        return { [Symbol.dispose]: () => void this.held-- };
      },
      next: async (signal: AbortSignal) => {
        while (this.#news.length === 0) {
          await new Promise<void>((resolve, reject) => {
            this.#wake = resolve;
            signal.addEventListener('abort', () => reject(signal.reason), { once: true });
          });
        }
        return this.#news.shift();
      },
      [Symbol.dispose]: () => {},
    };
  }
}

describe('a shutdown announced by logind', () => {
  it('delays an announced shutdown until the pods have terminated and their statuses are reported; after a cancellation also delays the next shutdown', async () => {
    const announcer = new Announcer();
    const pods = [podOf('low', 0)];
    const { shutdown, clock, story } = aNode({ low: 3 }, pods, { announcer });
    const stop = new AbortController();
    const running = shutdown.run(stop.signal);
    await clock.advance(10);
    assert.deepEqual([announcer.held, announcer.opened], [1, [30_000]]);
    announcer.say('begins');
    await clock.advance(2_000);
    assert.deepEqual([announcer.held, shutdown.isShuttingDown], [1, true]);
    await clock.advance(2_000);
    assert.deepEqual([announcer.held, story.at(-1)], [0, '3 s: told low']);
    announcer.say('cancelled');
    await clock.advance(10);
    assert.deepEqual([announcer.held, shutdown.isShuttingDown, story.at(-1)], [1, false, '4 s: ready']);
    stop.abort(new Error('ended'));
    await running;
    assert.deepEqual([announcer.held, clock.pendingTimers], [0, 0]);
  });

  it('ends the node shutdown when the machine shutdown was cancelled while the connection to logind was lost', async () => {
    const announcer = new Announcer();
    const { shutdown, clock, story } = aNode({}, [], { announcer });
    const stop = new AbortController();
    const running = shutdown.run(stop.signal);
    announcer.isUnderWay = true;
    announcer.say('begins');
    announcer.say(undefined);
    await clock.advance(5_000);
    assert.deepEqual([announcer.opened.length > 1, shutdown.isShuttingDown], [true, true]);
    announcer.isUnderWay = false;
    announcer.say(undefined);
    await clock.advance(60_000);
    assert.equal(shutdown.isShuttingDown, false);
    assert.match(story.at(-1) ?? '', /ready$/);
    stop.abort(new Error('ended'));
    await running;
  });

  it('watches for shutdowns again after the connection to logind was lost, and logs the loss once', async () => {
    const announcer = new Announcer();
    const { shutdown, clock, records } = aNode({}, [], { announcer });
    const stop = new AbortController();
    const running = shutdown.run(stop.signal);
    await clock.advance(10);
    announcer.fails = true;
    announcer.say(undefined);
    await clock.advance(30_000);
    assert.ok(announcer.opened.length > 3);
    assert.equal([...records].length, 2);
    announcer.fails = false;
    await clock.advance(60_000);
    assert.equal(announcer.held, 1);
    stop.abort(new Error('ended'));
    await running;
    assert.deepEqual([announcer.held, clock.pendingTimers], [0, 0]);
  });
});

const nothing = {
  shutdownGracePeriodMs: 0,
  shutdownGracePeriodCriticalPodsMs: 0,
  shutdownGracePeriodByPodPriority: [],
};

describe('shutdown groups', () => {
  it('creates no shutdown groups by default, two for shutdownGracePeriod, and the configured ones for shutdownGracePeriodByPodPriority', () => {
    assert.deepEqual(shutdownGroups(nothing), []);
    const plain = shutdownGroups({
      ...nothing,
      shutdownGracePeriodMs: 30_000,
      shutdownGracePeriodCriticalPodsMs: 10_000,
    });
    assert.deepEqual(plain, [
      { priority: 0, seconds: 20 },
      { priority: 2_000_000_000, seconds: 10 },
    ]);
    assert.equal(wholeSeconds(plain), 30);
    const reported = [
      { priority: 100, shutdownGracePeriodSeconds: 2 },
      { priority: -5, shutdownGracePeriodSeconds: 1 },
    ];
    assert.deepEqual(shutdownGroups({ ...nothing, shutdownGracePeriodByPodPriority: reported }), [
      { priority: -5, seconds: 1 },
      { priority: 100, seconds: 2 },
    ]);
  });

  it('assigns each pod to the highest shutdown group not above its priority, else to the lowest group', () => {
    const priorities = fc.uniqueArray(fc.integer({ min: -9, max: 9 }), { minLength: 1, maxLength: 5 });
    const pods = fc.array(fc.option(fc.integer({ min: -12, max: 12 }), { nil: undefined }));
    fc.assert(
      fc.property(priorities, pods, (all, expected) => {
        const groups = all.toSorted((a, b) => a - b).map((priority) => ({ priority, seconds: 1 }));
        const divided = byShutdownGroup(
          groups,
          expected.map((priority) => ({ spec: { priority } })),
        );
        assert.equal(divided.flatMap((group) => group.pods).length, expected.length);
        for (const { priority: least, pods: members } of divided)
          for (const { spec } of members) {
            const fitting = groups.filter(({ priority }) => priority <= (spec.priority ?? 0));
            assert.equal(least, (fitting.at(-1) ?? groups[0])?.priority);
          }
      }),
    );
  });
});
