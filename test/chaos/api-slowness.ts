import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Node } from '../../src/kinds/index.ts';
import { isReady } from '../cluster/cluster-pods.ts';
import { patiently } from '../cluster/patiently.ts';
import { type FaultyCluster, longMs, uptimeSeconds } from './faulty-cluster.ts';
import { bound, markedPod } from './faulty-pods.ts';

export interface SlownessPlan {
  /** The delay of every response of the API server, including watch events. */
  readonly delayMs: number;
  /** The numbers of pods that are started sequentially, from the API and from manifests each. */
  readonly pods: number;
  /** The minimum time for which the API server is slow. */
  readonly slowMs: number;
}

/** The additional time a busy machine may need, in seconds. */
const slackSeconds = 1.5;

interface Starts {
  readonly fromApi: number;
  readonly fromManifest: number;
  readonly atOnce: number;
}

/** Checks that a slow API server delays only the changes that it delivers. */
export class ApiSlowness {
  readonly #cluster: FaultyCluster;
  readonly #plan: SlownessPlan;

  static async run(cluster: FaultyCluster, plan: SlownessPlan): Promise<void> {
    await new ApiSlowness(cluster, plan).#all();
  }

  private constructor(cluster: FaultyCluster, plan: SlownessPlan) {
    this.#cluster = cluster;
    this.#plan = plan;
  }

  async #all(): Promise<void> {
    const { door } = this.#cluster;
    const { delayMs, slowMs } = this.#plan;
    // Observing the node takes time as well, so it is observed in both measurements.
    const usual = await this.#watched(0, () => this.#measure('usual'));
    door.answerDelayMs = delayMs;
    const slow = await this.#watched(slowMs, () => this.#measure('slow'));
    door.answerDelayMs = 0;
    this.#cluster.tell(`each answer ${delayMs} ms late:\n${tableOf(usual, slow)}`);
    this.#notHeldUp(usual, slow);
  }

  async #watched<T>(leastMs: number, act: () => Promise<T>): Promise<T> {
    const over = new AbortController();
    const watching = this.#watchNode(leastMs, over.signal);
    const acting = act().finally(() => over.abort());
    const [longest, done] = await Promise.all([watching, acting]);
    this.#cluster.tell(`the lease was ${longest.toFixed(1)} s old at most, and the node Ready all the time`);
    return done;
  }

  #notHeldUp(usual: Starts, slow: Starts): void {
    const late = this.#plan.delayMs / 1_000;
    assert.ok(slow.fromManifest <= usual.fromManifest + slackSeconds, 'a manifest needs no API server');
    assert.ok(slow.fromApi <= usual.fromApi + late + slackSeconds, 'only the news of a pod may be late');
    assert.ok(slow.atOnce <= usual.atOnce * 1.5 + late + slackSeconds, 'many at once are held up no more');
  }

  async #measure(word: string): Promise<Starts> {
    const { pods } = this.#plan;
    const names = (kind: string) => Array.from({ length: pods }, (_, index) => `${word}-${kind}-${index}`);
    const [api, files, many] = [names('api'), names('file'), names('many')];
    const fromApi: number[] = [];
    const fromManifest: number[] = [];
    for (const name of api) fromApi.push(await this.#started([name], () => this.#create([name])));
    for (const name of files) fromManifest.push(await this.#started([name], () => this.#put(name)));
    const atOnce = await this.#started(many, () => this.#create(many));
    const mirrors = files.map((name) => `${name}-${this.#cluster.node.name}`);
    // Despite the delays, all pods and mirror pods must become Ready.
    await this.#cluster.allAre([...api, ...many, ...mirrors], 'Ready', isReady);
    for (const name of files) await this.#cluster.node.take(`${name}.json`);
    await this.#cluster.remove([...api, ...many]);
    await this.#cluster.allAreGone(mirrors);
    return { fromApi: median(fromApi), fromManifest: median(fromManifest), atOnce };
  }

  async #create(names: readonly string[]): Promise<void> {
    const { node, plane } = this.#cluster;
    const make = (name: string) =>
      plane.create('/api/v1/namespaces/default/pods', bound(markedPod(this.#cluster, name), node.name));
    await Promise.all(names.map(make));
  }

  async #put(name: string): Promise<void> {
    await this.#cluster.node.put(`${name}.json`, markedPod(this.#cluster, name));
  }

  /** Returns the time from the request until the last pod runs, in seconds. */
  async #started(names: readonly string[], ask: () => Promise<void>): Promise<number> {
    const askedAt = await uptimeSeconds();
    await ask();
    const starts = await patiently(
      `${names.join(' ')} to start`,
      async () => {
        const found = await Promise.all(names.map((name) => this.#cluster.starts(name)));
        const first = found.flatMap(([start]) => start ?? []);
        return first.length === names.length ? first : undefined;
      },
      () => this.#cluster.node.out.slice(-6_000),
      longMs,
    );
    return Math.max(...starts) - askedAt;
  }

  /**
   * Observes the node's lease until stopped, but at least for the given time; returns the lease's
   * maximum age in seconds.
   */
  async #watchNode(leastMs: number, signal: AbortSignal): Promise<number> {
    const { plane, node } = this.#cluster;
    const endMs = performance.now() + leastMs;
    let longest = 0;
    while (!signal.aborted || performance.now() < endMs) {
      const found = await plane.get<Node>(`/api/v1/nodes/${node.name}`);
      const ready = found?.status?.conditions?.find(({ type }) => type === 'Ready');
      assert.equal(ready?.status, 'True', `the node is ${ready?.status}: ${ready?.message}`);
      longest = Math.max(longest, await this.#leaseSeconds());
      await delay(500);
    }
    return longest;
  }

  async #leaseSeconds(): Promise<number> {
    const path = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${this.#cluster.node.name}`;
    const lease = await this.#cluster.plane.get<{ readonly spec: { readonly renewTime: string } }>(path);
    return (Date.now() - Date.parse(lease?.spec.renewTime ?? '')) / 1_000;
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((each, other) => each - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function tableOf(usual: Starts, slow: Starts): string {
  const row = (what: string, key: keyof Starts) =>
    `  ${what.padEnd(38)} ${usual[key].toFixed(2)} s -> ${slow[key].toFixed(2)} s`;
  return [
    row('from the API to running, median', 'fromApi'),
    row('from a manifest to running, median', 'fromManifest'),
    row('all at once from the API to running', 'atOnce'),
  ].join('\n');
}
