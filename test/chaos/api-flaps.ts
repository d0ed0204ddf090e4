import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { openWatches, watchesBegun } from '../cluster/audit-log.ts';
import { isReady } from '../cluster/cluster-pods.ts';
import { patiently } from '../cluster/patiently.ts';
import { type ProcessFigures, ProcessInsight } from '../cluster/process-figures.ts';
import { type FaultyCluster, longMs } from './faulty-cluster.ts';
import { markedPod } from './faulty-pods.ts';

export interface FlapsPlan {
  /** How often the API server stops and restarts. */
  readonly times: number;
  /** The duration of each downtime, and of each uptime after it. */
  readonly everyMs: number;
  readonly pods: number;
}

const mebibyte = 1_048_576;

/**
 * Metrics of the process that may be higher afterwards: the numbers of idle connections and timers
 * vary all the time.
 */
const allowance: Partial<Record<keyof ProcessFigures, number>> = {
  descriptors: 3,
  sockets: 3,
  timers: 5,
  abortSignals: 20,
  promises: 400,
  heapBytes: 2 * mebibyte,
};

/**
 * Stops and restarts the API server repeatedly: no resources leak, and all watches are restored.
 */
export class ApiFlaps {
  readonly #cluster: FaultyCluster;
  readonly #plan: FlapsPlan;
  readonly #names: readonly string[];

  static async run(cluster: FaultyCluster, plan: FlapsPlan): Promise<void> {
    await new ApiFlaps(cluster, plan).#all();
  }

  private constructor(cluster: FaultyCluster, plan: FlapsPlan) {
    this.#cluster = cluster;
    this.#plan = plan;
    this.#names = Array.from({ length: plan.pods }, (_, index) => `flap-${index}`);
  }

  async #all(): Promise<void> {
    const { node, plane, audit, door } = this.#cluster;
    await this.#prepare();
    const containers = await this.#cluster.containersOf(this.#names);
    const watched = watchedBy(node.name);
    using insight = await ProcessInsight.open(node.pid, () => node.out);
    // Counts watches from here on. Two restarts precede the measurement, because the first restarts
    // fill the caches of the process.
    const begin = await audit.now();
    await this.#flap(2);
    await this.#settled();
    await this.#watchedAgain(watched, begin);
    const before = await insight.figures();
    const lastOpen = await this.#flap(this.#plan.times);
    await this.#settled();
    await this.#watchedOnce(watched, { begin, lastOpen });
    await this.#sameFigures(before, insight);
    assert.deepEqual(await this.#cluster.containersOf(this.#names), containers);
    this.#cluster.tell(`${door.accepted} connections so far, ${door.connections} now`);
    await this.#cluster.remove(this.#names);
    await plane.kubectl('delete', 'configmap/flapping', 'secret/flapping');
  }

  /** The pods use config maps and secrets, because the kubelet watches each of these separately. */
  async #prepare(): Promise<void> {
    const { plane } = this.#cluster;
    await plane.kubectl('create', 'configmap', 'flapping', '--from-literal=a=b');
    await plane.kubectl('create', 'secret', 'generic', 'flapping', '--from-literal=a=b');
    const volumes = [
      { name: 'one', configMap: { name: 'flapping' } },
      { name: 'other', secret: { secretName: 'flapping' } },
    ];
    await plane.apply(...this.#names.map((name) => markedPod(this.#cluster, name, { volumes })));
    await this.#cluster.allAre(this.#names, 'Ready', isReady);
  }

  /**
   * Stops and restarts the API server repeatedly. Returns the position in the audit log after which
   * the server stays up.
   */
  async #flap(times: number): Promise<number> {
    const { door, audit } = this.#cluster;
    let place = 0;
    for (let flap = 0; flap < times; flap++) {
      await door.shut();
      await delay(this.#plan.everyMs);
      place = await audit.now();
      await door.reopen();
      await delay(this.#plan.everyMs);
    }
    return place;
  }

  /** The node has recovered when it has applied a change and renewed its lease. */
  async #settled(): Promise<void> {
    const { node, plane, audit } = this.#cluster;
    const place = await audit.now();
    await node.put('settled.json', markedPod(this.#cluster, 'settled'));
    await this.#cluster.allAre([`settled-${node.name}`], 'Ready', isReady);
    await node.take('settled.json');
    await this.#cluster.allAreGone([`settled-${node.name}`]);
    await patiently(
      'the lease to be renewed twice',
      async () => {
        const calls = await audit.since(place);
        const renewals = calls.filter(
          ({ verb, objectRef }) => verb === 'update' && objectRef?.resource === 'leases',
        );
        return renewals.length >= 2 ? true : undefined;
      },
      undefined,
      longMs,
    );
    assert.ok(await plane.get(`/api/v1/nodes/${node.name}`));
  }

  /**
   * Waits until each object is watched exactly once, as before the outages; it does not matter when
   * the watches began.
   */
  async #watchedAgain(before: readonly string[], begin: number): Promise<void> {
    const { audit } = this.#cluster;
    let now: readonly string[] = [];
    await patiently(
      'everything to be watched as before',
      async () => {
        now = openWatches(await audit.since(begin));
        return now.join('\n') === before.join('\n') ? true : undefined;
      },
      () => `before:\n${before.join('\n')}\nnow:\n${now.join('\n')}`,
      longMs,
    );
  }

  /**
   * Each object that was watched before the outages must have exactly one open watch again, and
   * only one watch of it may have been started since the server stayed up.
   */
  async #watchedOnce(
    before: readonly string[],
    { begin, lastOpen }: { readonly begin: number; readonly lastOpen: number },
  ): Promise<void> {
    const { audit } = this.#cluster;
    await this.#watchedAgain(before, begin);
    const begun = watchesBegun(await audit.since(lastOpen));
    this.#cluster.tell(`${before.length} watches as before, begun since: ${[...begun.values()].join(' ')}`);
    assert.deepEqual([...begun.keys()].toSorted(), before);
    for (const [watched, times] of begun) assert.equal(times, 1, `${watched} began ${times} times`);
  }

  /**
   * Compares the metrics of the process with those before the outages; waits, because idle
   * connections are closed within a minute.
   */
  async #sameFigures(before: ProcessFigures, insight: ProcessInsight): Promise<void> {
    let after = before;
    const told = () => tableOf(before, after);
    await patiently(
      'the process to hold no more than before',
      async () => {
        after = await insight.figures();
        const isMore = Object.entries(allowance).some(
          ([name, more]) => after[name as keyof ProcessFigures] > before[name as keyof ProcessFigures] + more,
        );
        if (isMore) await delay(5_000);
        return isMore ? undefined : true;
      },
      told,
      180_000,
    );
    this.#cluster.tell(`${this.#plan.times} times away and back:\n${told()}`);
  }
}

function tableOf(before: ProcessFigures, after: ProcessFigures): string {
  const names = Object.keys(before) as (keyof ProcessFigures)[];
  return names.map((name) => `  ${name.padEnd(14)} ${before[name]} -> ${after[name]}`).join('\n');
}

/**
 * Returns the expected watches of this node, whose pods use the config map and the secret
 * `flapping`: each as its path and field selector.
 */
function watchedBy(node: string): readonly string[] {
  return [
    '/api/v1/namespaces/default/configmaps?metadata.name=flapping',
    '/api/v1/namespaces/default/secrets?metadata.name=flapping',
    `/api/v1/nodes?metadata.name=${node}`,
    `/api/v1/pods?spec.nodeName=${node}`,
    '/api/v1/services?spec.clusterIP!=None',
    '/apis/node.k8s.io/v1/runtimeclasses?',
  ];
}
