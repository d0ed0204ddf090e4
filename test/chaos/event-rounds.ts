import assert from 'node:assert/strict';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { busyboxImageName } from '../../src/containerd/index.ts';
import { eventually, isRunning, KubelingNode } from '../kubeling-node.ts';
import { EventProxy } from './event-proxy.ts';
import { keepLogs } from './kept-logs.ts';

export interface EventPlan {
  /** How many containers exit sequentially in each phase. */
  readonly exits: number;
  /**
   * Whether to wait until Evented PLEG is used again after events were dropped, which takes
   * minutes.
   */
  readonly until: 'cut' | 'restored';
  readonly tell: (text: string) => void;
  /** A promise whose rejection stops the test; the node is then removed. */
  readonly interrupted?: Promise<never>;
}

const signal = new AbortController().signal;
const relistCount = 'kubelet_pleg_relist_duration_seconds_count';
const lastListed = 'kubelet_pleg_last_seen_seconds';
const trusted = 'kubeling_pleg_events_trusted';
/**
 * A periodic relist happens every half minute, so one of them may coincide with one of the exits.
 */
const disturbed = 1;

interface Exit {
  readonly finishedMs: number;
  readonly createdMs: number;
  readonly startedMs: number;
}

/**
 * Lets containers exit with and without runtime events. With events each container must run again
 * before the next relist of all pods; without events the loss must be detected, and all pods are
 * then relisted every second.
 */
export class EventRounds {
  readonly #node: KubelingNode;
  readonly #proxy: EventProxy;
  readonly #plan: EventPlan;
  readonly #marks: string;
  #pods = 0;

  static async run(plan: EventPlan): Promise<void> {
    const node = await KubelingNode.open();
    let end: 'well' | 'failed' = 'failed';
    try {
      await EventRounds.#on(node, plan);
      end = 'well';
    } catch (error) {
      plan.tell(`logs are kept in ${await keepLogs(node.dataDir, 'events')}`);
      throw error;
    } finally {
      const left = await node.leave();
      if (end === 'well') assert.deepEqual(left, [], 'the machine must be as it was before');
    }
  }

  /** Puts the proxy at containerd's socket path; containerd itself listens at another path. */
  static async #on(node: KubelingNode, plan: EventPlan): Promise<void> {
    const socket = join(node.dataDir, 'containerd', 'containerd.sock');
    const behind = join(node.dataDir, 'containerd', 'behind.sock');
    await node.end('SIGTERM');
    await rename(socket, behind);
    try {
      await using proxy = new EventProxy(behind);
      await proxy.listen(socket);
      await node.start();
      const rounds = new EventRounds(node, proxy, plan);
      await Promise.race([rounds.#all(), ...(plan.interrupted === undefined ? [] : [plan.interrupted])]);
      await node.end('SIGTERM');
    } finally {
      await node.end('SIGKILL');
      await rename(behind, socket);
    }
  }

  private constructor(node: KubelingNode, proxy: EventProxy, plan: EventPlan) {
    this.#node = node;
    this.#proxy = proxy;
    this.#plan = plan;
    this.#marks = join(node.dataDir, 'marks');
  }

  async #all(): Promise<void> {
    await mkdir(this.#marks);
    await this.#becomesTrusted();
    await this.#drivenByEvents('with events');
    await this.#cutOff();
    if (this.#plan.until === 'restored') {
      await this.#restored();
      await this.#drivenByEvents('with events again');
    }
    for (let pod = 0; pod < this.#pods; pod++) await this.#node.take(`e${pod}.yaml`);
    await eventually('the node to be empty', async () =>
      (await this.#node.pods()).length === 0 ? true : undefined,
    );
  }

  async #drivenByEvents(when: string): Promise<void> {
    const names = await this.#newPods(this.#plan.exits);
    const exits: Exit[] = [];
    let relisted = 0;
    for (const name of names) {
      const before = await this.#quiet();
      const exit = await this.#exit(name);
      exits.push(exit);
      const now = await this.#metrics();
      // The relist happened after the container had restarted, so it cannot have caused the
      // restart.
      const looks = (now[relistCount] ?? 0) - before;
      const lookMs = 1_000 * (now[lastListed] ?? 0);
      const isClear = looks === 0 || lookMs < exit.finishedMs || (looks === 1 && lookMs >= exit.createdMs);
      if (!isClear) relisted++;
    }
    const reported = exits.map(({ finishedMs, startedMs }) => (startedMs - finishedMs).toFixed(0)).join(', ');
    this.#plan.tell(`${when}: running again after ${reported} ms`);
    assert.ok(relisted <= disturbed, `${relisted} of ${exits.length} were seen by looks at all pods`);
    assert.equal((await this.#metrics())[trusted], 1);
  }

  /**
   * Exits are not noticed until the loss of events is detected; then all pods are relisted every
   * second.
   */
  async #cutOff(): Promise<void> {
    const [name = ''] = await this.#newPods(1);
    this.#proxy.events = 'swallow';
    const startMs = performance.now();
    const [, { finishedMs, startedMs }] = await Promise.all([this.#becomesUntrusted(), this.#exit(name)]);
    this.#plan.tell(
      `events cut off: no longer relied on, and running again ${((startedMs - finishedMs) / 1_000).toFixed(1)} s after the exit`,
    );
    assert.ok(this.#proxy.swallowed > 0, 'events must have been swallowed');
    const before = (await this.#metrics())[relistCount] ?? 0;
    // Five relists within 20 seconds show that all pods are relisted every second; with one relist
    // every half minute they would take minutes.
    await eventually(
      'all pods to be looked at every second',
      async () => (((await this.#metrics())[relistCount] ?? 0) >= before + 5 ? true : undefined),
      20_000,
    );
    const [again = ''] = await this.#newPods(1);
    const exit = await this.#exit(again);
    this.#plan.tell(
      `looking every second: running again after ${(exit.startedMs - exit.finishedMs).toFixed(0)} ms; ` +
        `${((performance.now() - startMs) / 1_000).toFixed(0)} s without events`,
    );
    assert.equal((await this.#metrics())[trusted], 0);
  }

  async #restored(): Promise<void> {
    const startMs = performance.now();
    this.#proxy.events = 'pass';
    await this.#becomesTrusted();
    this.#plan.tell(`events back: relied on after ${((performance.now() - startMs) / 1_000).toFixed(0)} s`);
  }

  /** Starts pods during the wait, because CRI events are caused only by changes of pods. */
  async #becomesTrusted(): Promise<void> {
    await eventually(
      'events to be trusted',
      async () => {
        await this.#newPods(1);
        const until = performance.now() + 10_000;
        while (performance.now() < until) {
          if ((await this.#metrics())[trusted] === 1) return true;
          await delay(100);
        }
        return undefined;
      },
      180_000,
    );
  }

  async #becomesUntrusted(): Promise<void> {
    await eventually(
      'events to be trusted no longer',
      async () => ((await this.#metrics())[trusted] === 0 ? true : undefined),
      180_000,
    );
  }

  /** Waits until no relist happens for a while; returns the number of relists. */
  async #quiet(): Promise<number> {
    let last = -1;
    let same = 0;
    return await eventually('a moment in which all pods are not looked at', async () => {
      const now = (await this.#metrics())[relistCount] ?? 0;
      same = now === last ? same + 1 : 0;
      last = now;
      return same >= 15 ? now : undefined;
    });
  }

  /** Uses pods that have not restarted yet, because only the first restart has no back-off. */
  async #newPods(count: number): Promise<readonly string[]> {
    const names = Array.from({ length: count }, () => `e${this.#pods++}`);
    for (const name of names) await this.#node.put(`${name}.yaml`, this.#manifest(name));
    for (const name of names) await this.#node.running(name);
    return names;
  }

  /** Lets the container exit by itself, and waits until the runtime reports that it runs again. */
  async #exit(name: string): Promise<Exit> {
    const [before] = await this.#node.containersOf(name);
    assert.ok(before);
    await writeFile(join(this.#marks, name), '');
    const again = await eventually(
      `${name} to run again`,
      async () =>
        (await this.#node.containersOf(name)).find(
          ({ id, state }) => id !== before.id && state === 'CONTAINER_RUNNING',
        ),
      120_000,
    );
    const { status: was } = await this.#node.cri.containerStatus({ containerId: before.id }, signal);
    const { status: is } = await this.#node.cri.containerStatus({ containerId: again.id }, signal);
    await this.#node.podIs(
      name,
      'told to be running again',
      ({ containerStatuses: [status] = [] }) =>
        status !== undefined && isRunning(status) && status.restartCount === 1,
    );
    return {
      finishedMs: Number(was?.finishedAt ?? 0n) / 1e6,
      createdMs: Number(is?.createdAt ?? 0n) / 1e6,
      startedMs: Number(is?.startedAt ?? 0n) / 1e6,
    };
  }

  async #metrics(): Promise<Readonly<Record<string, number>>> {
    const lines = (await this.#node.get('/metrics')).split('\n').filter((line) => !line.startsWith('#'));
    return Object.fromEntries(
      lines.map((line) => line.split(' ')).map(([name = '', value]) => [name, Number(value)]),
    );
  }

  #manifest(name: string) {
    const exits = `until [ -e /marks/${name} ]; do sleep 0.05; done; rm /marks/${name}; exit 0`;
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: {
        terminationGracePeriodSeconds: 1,
        volumes: [{ name: 'marks', hostPath: { path: this.#marks } }],
        containers: [
          {
            name: 'main',
            image: busyboxImageName,
            command: ['sh', '-c', `trap "exit 0" TERM; ${exits}`],
            volumeMounts: [{ name: 'marks', mountPath: '/marks' }],
          },
        ],
      },
    };
  }
}
