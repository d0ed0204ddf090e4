import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../../lib/index.ts';
import type { KernelLog } from './kernel-log.ts';
import { type LogPosition, OomWatcher } from './oom-watcher.ts';

const uid = '11111111-aaaa-4bbb-8ccc-000000000001';
const ids = ['a', 'b'].map((letter) => letter.repeat(64)) as [string, string];

/** A machine with the kernel log of its current boot and the persisted position in that log. */
class Machine {
  readonly clock = new VirtualClock();
  readonly told: string[] = [];
  boot = 'boot-1';
  noted: LogPosition | undefined;
  #records: string[] = [];
  #first = 0;

  say(message: string, priority = 6): void {
    this.#records.push(`${priority},${this.#first + this.#records.length},1000,-;${message}\n`);
  }

  systemOom(process = 'hog'): void {
    this.say(`${process} invoked oom-killer: gfp_mask=0x0`);
    this.say(
      `oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/x,task=${process},pid=7,uid=0`,
    );
  }

  podOom(id: string, below = `/kubepods/pod${uid}/${id}`): void {
    this.say('x invoked oom-killer: gfp_mask=0x0');
    this.say(
      `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=${below},task_memcg=/kubepods/pod${uid}/${id},task=x,pid=8,uid=0`,
    );
  }

  /** Removes the oldest records, as the kernel does when its log buffer is full. */
  forget(): void {
    this.#first += this.#records.length;
    this.#records = [];
  }

  log(): KernelLog {
    return {
      open: () => {
        let at = this.#first;
        return {
          next: () => {
            at = Math.max(at, this.#first);
            const text = this.#records[at - this.#first];
            if (text !== undefined) at++;
            return text;
          },
          [Symbol.dispose]: () => {},
        };
      },
    };
  }

  /** Starts the watcher; the returned function aborts it. */
  async begin(): Promise<() => Promise<void>> {
    const watcher = new OomWatcher({
      log: this.log(),
      note: {
        read: async () => this.noted,
        write: async (position) => {
          this.noted = position;
        },
      },
      readBoot: async () => `${this.boot}\n`,
      clock: this.clock,
      logger: collectLogs(this.clock).logger,
      systemOom: ({ process, pid }) => void this.told.push(`system ${process} ${pid}`),
      podOom: ({ containerId, limit }) => void this.told.push(`pod ${containerId[0]} ${limit}`),
    });
    const stop = new AbortController();
    const running = watcher.run(stop.signal);
    await this.clock.advance(2_000);
    return async () => {
      stop.abort(new Error('ended'));
      await running;
      assert.equal(this.clock.pendingTimers, 0);
    };
  }
}

describe('a system OOM', () => {
  it('reports a system OOM once, also across a restart', async () => {
    const machine = new Machine();
    const end = await machine.begin();
    machine.systemOom();
    await machine.clock.advance(2_000);
    await end();
    await (await machine.begin())();
    assert.deepEqual(machine.told, ['system hog 7']);
  });

  it('reports a system OOM that happened while the kubelet was not running, but none from before its first run', async () => {
    const machine = new Machine();
    machine.systemOom('old');
    await (await machine.begin())();
    machine.systemOom('new');
    await (await machine.begin())();
    assert.deepEqual(machine.told, ['system new 7']);
  });

  it('reads the kernel log from its start after a reboot', async () => {
    const machine = new Machine();
    for (let count = 0; count < 1_000; count++) machine.say('noise');
    await (await machine.begin())();
    assert.equal(machine.noted?.sequence, 999);
    const again = new Machine();
    again.noted = machine.noted;
    again.boot = 'boot-2';
    const end = await again.begin();
    again.systemOom();
    await again.clock.advance(2_000);
    assert.deepEqual(again.told, ['system hog 7']);
    await end();
  });

  it('reports a system OOM even if older records were overwritten before they were read', async () => {
    const machine = new Machine();
    const end = await machine.begin();
    for (let count = 0; count < 100; count++) machine.say('noise');
    machine.forget();
    machine.systemOom();
    await machine.clock.advance(2_000);
    assert.deepEqual(machine.told, ['system hog 7']);
    await end();
  });

  it('ignores OOM messages that are not from the kernel', async () => {
    const machine = new Machine();
    const end = await machine.begin();
    machine.say('joke invoked oom-killer: ', 14);
    machine.say('Killed process 1 (joke) total', 14);
    await machine.clock.advance(2_000);
    assert.deepEqual(machine.told, []);
    await end();
  });
});

describe('a container OOM', () => {
  it('reports an OOM of a container once for all its processes, and again after an interval', async () => {
    const machine = new Machine();
    const end = await machine.begin();
    machine.podOom(ids[0]);
    machine.podOom(ids[0]);
    machine.podOom(ids[1], `/kubepods/pod${uid}`);
    await machine.clock.advance(4_000);
    machine.podOom(ids[0]);
    await machine.clock.advance(4_000);
    assert.deepEqual(machine.told, ['pod a container', 'pod b pod']);
    await machine.clock.advance(60_000);
    machine.podOom(ids[0], '/kubepods');
    await machine.clock.advance(2_000);
    assert.deepEqual(machine.told.slice(2), ['pod a node']);
    await end();
  });
});

it('logs an unreadable kernel log once and blocks nothing', async () => {
  const clock = new VirtualClock();
  const { logger, records } = collectLogs(clock);
  const refuse = () => {
    throw Object.assign(new Error('EPERM: operation not permitted'), { code: 'EPERM' });
  };
  const never = async () => assert.fail('not to be called');
  const watcher = new OomWatcher({
    log: { open: refuse },
    note: { read: never, write: never },
    readBoot: never,
    clock,
    logger,
    systemOom: never,
    podOom: never,
  });
  const stop = new AbortController();
  const running = watcher.run(stop.signal);
  await clock.advance(600_000);
  assert.deepEqual([...records].length, 1);
  stop.abort(new Error('ended'));
  await running;
});
