import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type Random, randomInt, seededRandom } from '../../src/lib/index.ts';
import { freePorts } from '../free-ports.ts';
import { eventually, KubelingNode } from '../kubeling-node.ts';
import { ApiCaller } from './api-caller.ts';
import { Gate, writeConfigMaps } from './config-map-writer.ts';
import { keepLogs } from './kept-logs.ts';
import { ResumingWatch } from './resuming-watch.ts';
import { type State, WriteLedger } from './write-ledger.ts';

export interface UpRoundsOptions {
  readonly kills: number;
  readonly seed: number;
  readonly tell: (line: string) => void;
  readonly interrupted?: Promise<never>;
}

export interface UpReport {
  readonly kills: number;
  readonly killsAtStart: number;
  readonly writes: number;
  readonly perSecond: number;
  readonly events: number;
  readonly resumed: number;
  readonly expired: number;
  readonly newest: number;
}

const image = 'localhost/kubeling/busybox:1';
const writers = 64;
const namesOfWriter = 8;
const watchers = 4;
/**
 * The maximum time before a kill, counted from when the API responds, or for some kills from the
 * start.
 */
const longestLifeMs = 1_500;
const path = '/api/v1/namespaces/default/configmaps';
const podsPath = '/api/v1/namespaces/default/pods';
const podNames = ['kept-1', 'kept-2', 'kept-3'];

/**
 * Kills `kubeling up` repeatedly while clients write to its API and watch: acknowledged writes must
 * exist, no version may have two states, watches must resume without a gap, and the containers of
 * its pods must keep running.
 */
export class UpRounds {
  readonly #node: KubelingNode;
  readonly #api: ApiCaller;
  readonly #options: UpRoundsOptions;
  readonly #random: Random;
  readonly #ledger = new WriteLedger();
  readonly #gate = new Gate();
  readonly #watches: readonly ResumingWatch[];
  #containers: readonly string[] = [];
  #busyMs = 0;
  #killsAtStart = 0;

  static async run(options: UpRoundsOptions): Promise<UpReport> {
    const [port] = await freePorts(1);
    const node = await KubelingNode.open(undefined, ['--listen', `127.0.0.1:${port}`]);
    let report: UpReport | undefined;
    try {
      report = await UpRounds.#on(node, options);
    } finally {
      const left = await node.leave();
      if (report !== undefined) assert.deepEqual(left, [], 'the machine must be as it was before');
    }
    return report;
  }

  static async #on(node: KubelingNode, options: UpRoundsOptions): Promise<UpReport> {
    using api = await ApiCaller.open(join(node.dataDir, 'kubeconfig'));
    const { body } = await api.call('GET', path);
    const { resourceVersion } = body['metadata'] as { readonly resourceVersion: string };
    const rounds = new UpRounds(node, api, options, Number(resourceVersion));
    try {
      return await rounds.#all();
    } catch (error) {
      options.tell(`logs are kept in ${await keepLogs(node.dataDir, `up-${options.seed}`)}`);
      throw error;
    }
  }

  private constructor(node: KubelingNode, api: ApiCaller, options: UpRoundsOptions, version: number) {
    this.#node = node;
    this.#api = api;
    this.#options = options;
    this.#random = seededRandom(options.seed);
    this.#watches = Array.from(
      { length: watchers },
      () => new ResumingWatch(api, path, this.#ledger, version),
    );
  }

  async #all(): Promise<UpReport> {
    await this.#startPods();
    const end = new AbortController();
    const working = [
      ...this.#watches.map((watch) => watch.run(end.signal)),
      ...Array.from({ length: writers }, (_, index) => this.#write(index, end.signal)),
    ];
    const { interrupted } = this.#options;
    try {
      const failing = Promise.all(working).then(() => assert.fail('nobody was told to stop'));
      await Promise.race([this.#rounds(), failing, ...(interrupted === undefined ? [] : [interrupted])]);
    } finally {
      end.abort();
      this.#gate.open();
    }
    await Promise.all(working);
    return this.#report();
  }

  #write(index: number, signal: AbortSignal): Promise<void> {
    const names = Array.from({ length: namesOfWriter }, (_, own) => `c${index}-${own}`);
    const random = seededRandom(this.#options.seed * 1_000 + index);
    const shared = { api: this.#api, path, ledger: this.#ledger, gate: this.#gate };
    return writeConfigMaps({ ...shared, names, random }, signal);
  }

  async #startPods(): Promise<void> {
    for (const name of podNames) {
      const containers = [{ name: 'main', image, command: ['sleep', '100000'] }];
      const spec = { terminationGracePeriodSeconds: 0, containers };
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec };
      const { status, body } = await this.#api.call('POST', podsPath, pod);
      assert.equal(status, 201, JSON.stringify(body));
    }
    await this.#podsAreReady();
    this.#containers = await this.#containerIds();
    assert.equal(this.#containers.length, podNames.length);
  }

  async #rounds(): Promise<void> {
    for (let kill = 1; kill <= this.#options.kills; kill++) {
      await this.#connect();
      const before = this.#ledger.writes;
      const [lifeMs, beganMs] = [randomInt(this.#random, longestLifeMs), performance.now()];
      await pause(lifeMs);
      await this.#kill();
      const writes = this.#ledger.writes - before;
      this.#busyMs += performance.now() - beganMs;
      if (randomInt(this.#random, 5) === 0) await this.#killAtStart();
      await this.#node.start();
      await this.#look();
      this.#options.tell(`kill ${kill}: ${writes} writes in ${lifeMs} ms, now at ${this.#ledger.newest}`);
    }
    await this.#watchesCatchUp();
  }

  /** Unblocks the writers after a start of the server, and waits until they have written again. */
  async #connect(): Promise<void> {
    const before = this.#ledger.writes;
    this.#gate.open();
    await eventually('all writers to be connected', async () =>
      this.#ledger.writes >= before + writers ? true : undefined,
    );
  }

  /**
   * Kills the server during writes, and waits until all writers have noticed the missing responses.
   */
  async #kill(): Promise<void> {
    await this.#node.end('SIGKILL');
    this.#gate.close();
    await eventually('all writers to have noticed', async () =>
      this.#gate.waiting === writers ? true : undefined,
    );
  }

  async #killAtStart(): Promise<void> {
    this.#killsAtStart++;
    this.#node.launch();
    await pause(randomInt(this.#random, longestLifeMs));
    await this.#node.end('SIGKILL');
  }

  async #look(): Promise<void> {
    const { status, body } = await this.#api.call('GET', path);
    assert.equal(status, 200);
    const { items, metadata } = body as unknown as {
      readonly items: readonly {
        readonly metadata: { readonly name: string; readonly resourceVersion: string };
        readonly data?: { readonly number?: string };
      }[];
      readonly metadata: { readonly resourceVersion: string };
    };
    const version = Number(metadata.resourceVersion);
    assert.ok(
      version >= this.#ledger.newest,
      `version ${this.#ledger.newest} was seen, now it is ${version}`,
    );
    const found = items
      .filter(({ data }) => data?.number !== undefined)
      .map((item): [string, State] => [
        item.metadata.name,
        { version: Number(item.metadata.resourceVersion), number: Number(item.data?.number) },
      ]);
    this.#ledger.settle(new Map(found));
    await this.#podsAreReady();
    assert.deepEqual(await this.#containerIds(), this.#containers, 'the same containers run');
  }

  async #podsAreReady(): Promise<void> {
    await eventually('the pods to be ready', async () => {
      const { body } = await this.#api.call('GET', podsPath);
      const items = body['items'] as readonly {
        readonly status: { readonly conditions?: readonly object[] };
      }[];
      const isReady = ({ status }: (typeof items)[number]) =>
        (status.conditions as readonly { type: string; status: string }[] | undefined)?.some(
          (each) => each.type === 'Ready' && each.status === 'True',
        );
      return items.length === podNames.length && items.every(isReady) ? true : undefined;
    });
  }

  async #containerIds(): Promise<readonly string[]> {
    const all = await Promise.all(podNames.map((name) => this.#node.containersOf(name)));
    const running = all.flat().filter(({ state }) => state === 'CONTAINER_RUNNING');
    return running.map(({ id }) => id).toSorted();
  }

  async #watchesCatchUp(): Promise<void> {
    const { newest } = this.#ledger;
    await eventually('the watches to have seen it all', async () =>
      this.#watches.every(({ version }) => version >= newest) ? true : undefined,
    );
    for (const watch of this.#watches) assert.deepEqual(watch.missing(), [], 'a watch has a gap');
  }

  #report(): UpReport {
    const figures = this.#watches.map((watch) => watch.figures);
    const sum = (pick: (each: (typeof figures)[number]) => number) =>
      figures.reduce((total, one) => total + pick(one), 0);
    const { writes, newest } = this.#ledger;
    return {
      kills: this.#options.kills + this.#killsAtStart,
      killsAtStart: this.#killsAtStart,
      writes,
      perSecond: (writes * 1_000) / this.#busyMs,
      events: sum(({ events }) => events),
      resumed: sum(({ resumed }) => resumed),
      expired: sum(({ expired }) => expired),
      newest,
    };
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
