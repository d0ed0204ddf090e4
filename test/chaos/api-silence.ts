import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { isReady } from '../cluster/cluster-pods.ts';
import { patiently } from '../cluster/patiently.ts';
import { seconds } from './api-outage.ts';
import { type FaultyCluster, longMs } from './faulty-cluster.ts';
import { bound, markedPod } from './faulty-pods.ts';

export interface SilencePlan {
  /** For how long no data is transferred at all. */
  readonly frozenMs: number;
}

/**
 * The limit for recovery: watches time out within five to ten minutes, and a client must not wait
 * for that.
 */
const noticedWithinMs = 120_000;

/**
 * Blocks all data from the API server without closing connections: first temporarily, then
 * permanently on the existing connections. Pods must keep running, and the node must recover.
 */
export class ApiSilence {
  readonly #cluster: FaultyCluster;

  static async run(cluster: FaultyCluster, { frozenMs }: SilencePlan): Promise<void> {
    const silence = new ApiSilence(cluster);
    await silence.#frozen(frozenMs);
    await silence.#abandoned();
  }

  private constructor(cluster: FaultyCluster) {
    this.#cluster = cluster;
  }

  async #frozen(frozenMs: number): Promise<void> {
    const { door, node } = this.#cluster;
    await this.#create('steady');
    await this.#cluster.allAre(['steady'], 'Ready', isReady);
    const before = await this.#cluster.containersOf(['steady']);
    door.freeze();
    await node.put('alone.json', markedPod(this.#cluster, 'alone'));
    await this.#create('waits');
    await this.#runs(`alone-${node.name}`);
    await delay(frozenMs);
    assert.deepEqual(await this.#cluster.containersOf(['waits']), []);
    assert.deepEqual(await this.#cluster.containersOf(['steady']), before);
    const thawedMs = performance.now();
    door.thaw();
    await this.#cluster.allAre(['waits', 'steady', `alone-${node.name}`], 'Ready', isReady);
    this.#cluster.tell(
      `silent for ${seconds(frozenMs)}: all is told ${seconds(performance.now() - thawedMs)} after its end`,
    );
    assert.deepEqual(await this.#cluster.containersOf(['steady']), before);
    await node.take('alone.json');
    await this.#cluster.remove(['waits', 'steady']);
    await this.#cluster.allAreGone([`alone-${node.name}`]);
  }

  /** Leaves the existing connections open without data; only new connections work. */
  async #abandoned(): Promise<void> {
    const { door } = this.#cluster;
    const lostMs = performance.now();
    door.abandon();
    await this.#create('found');
    await this.#runs('found');
    const tookMs = performance.now() - lostMs;
    this.#cluster.tell(`connections lost without a word: a new pod ran after ${seconds(tookMs)}`);
    assert.ok(tookMs < noticedWithinMs);
    await this.#cluster.allAre(['found'], 'Ready', isReady);
    await this.#cluster.remove(['found']);
  }

  async #create(name: string): Promise<void> {
    const { node, plane } = this.#cluster;
    await plane.create('/api/v1/namespaces/default/pods', bound(markedPod(this.#cluster, name), node.name));
  }

  async #runs(name: string): Promise<void> {
    await patiently(
      `${name} to run`,
      async () => ((await this.#cluster.containersOf([name])).length === 1 ? true : undefined),
      () => this.#cluster.node.out.slice(-6_000),
      longMs,
    );
  }
}
