import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Pod } from '../../src/kinds/index.ts';
import { type AuditedCall, writesToPods } from '../cluster/audit-log.ts';
import { isReady } from '../cluster/cluster-pods.ts';
import { patiently } from '../cluster/patiently.ts';
import { seconds } from './api-outage.ts';
import { type FaultyCluster, longMs } from './faulty-cluster.ts';
import { execProbe, manifoldPod, marked, markedPod } from './faulty-pods.ts';

export interface RestartsPlan {
  readonly pods: number;
}

/** The parts of a pod's state that a kubelet restart must not change. */
interface Left {
  readonly name: string | undefined;
  readonly version: string | undefined;
  readonly ready: boolean;
  readonly restarts: readonly (number | undefined)[];
}

/** The number of lease renewals after which the kubelet has checked every status twice. */
const renewals = 3;
/** The time after which a kubelet would have acted on pods that are not desired. */
const aloneMs = 15_000;

/** Kills or stops kubeling and restarts it on a node with many pods: the pods must not change. */
export class NodeRestarts {
  readonly #cluster: FaultyCluster;
  /** The names of the API pods. */
  readonly #made: readonly string[];
  /** The names of the static pods. */
  readonly #fixed: readonly string[];
  /** The names of all pods in the API. */
  readonly #names: readonly string[];

  static async run(cluster: FaultyCluster, { pods }: RestartsPlan): Promise<void> {
    await new NodeRestarts(cluster, pods).#all();
  }

  private constructor(cluster: FaultyCluster, pods: number) {
    this.#cluster = cluster;
    this.#fixed = Array.from({ length: Math.ceil(pods / 10) }, (_, index) => `stays-fixed-${index}`);
    this.#made = Array.from({ length: pods - this.#fixed.length }, (_, index) => `stays-${index}`);
    this.#names = [...this.#made, ...this.#fixed.map((name) => `${name}-${cluster.node.name}`)];
  }

  async #all(): Promise<void> {
    const { plane, node } = this.#cluster;
    await plane.apply(...this.#made.map((name, index) => this.#make(name, index)));
    for (const [index, name] of this.#fixed.entries())
      await node.put(`${name}.json`, this.#make(name, index));
    await this.#cluster.allAre(this.#names, 'Ready', isReady);
    await this.#quiet();
    for (const how of ['SIGKILL', 'SIGTERM'] as const) await this.#restart(how);
    await this.#restartAlone();
    for (const name of this.#fixed) await node.take(`${name}.json`);
    await this.#cluster.remove(this.#made);
    await this.#cluster.allAreGone(this.#names);
  }

  #make(name: string, index: number): object {
    if (index % 5 === 0) return manifoldPod(this.#cluster, name);
    const probe = execProbe('true');
    const startupProbe = { ...probe, failureThreshold: 30 };
    const probes = [
      {},
      { readinessProbe: probe },
      { readinessProbe: probe, livenessProbe: probe, startupProbe },
    ];
    const containers = [marked(name, undefined, probes[index % 5] ?? {})];
    return markedPod(this.#cluster, name, { containers });
  }

  async #restart(how: NodeJS.Signals): Promise<void> {
    const { node } = this.#cluster;
    await this.#unnoticed(how, async () => {
      await node.kill(how);
      await node.start();
    });
  }

  /**
   * Restarts kubeling while the API server is down, so that it cannot know which API pods are still
   * desired.
   */
  async #restartAlone(): Promise<void> {
    const { node, door } = this.#cluster;
    const alone = `alone-${node.name}`;
    await this.#unnoticed('SIGKILL without an API server', async () => {
      const before = await this.#cluster.containersOf(this.#names);
      await door.shut();
      await node.kill('SIGKILL');
      await node.start();
      await node.put('alone.json', markedPod(this.#cluster, 'alone'));
      await patiently('a new manifest to be carried out', async () =>
        (await this.#cluster.containersOf([alone])).length === 1 ? true : undefined,
      );
      await delay(aloneMs);
      assert.deepEqual(await this.#cluster.containersOf(this.#names), before);
      await door.reopen();
    });
    await node.take('alone.json');
    await this.#cluster.allAreGone([alone]);
  }

  /**
   * Performs the action and checks that all containers are the same afterwards, and that no pod was
   * written.
   */
  async #unnoticed(what: string, act: () => Promise<void>): Promise<void> {
    const { audit } = this.#cluster;
    const [before, containers] = [await this.#left(), await this.#cluster.containersOf(this.#names)];
    const place = await audit.now();
    const startMs = performance.now();
    await act();
    const tookMs = performance.now() - startMs;
    await this.#renewed(place);
    const calls = await audit.since(place);
    assert.deepEqual(
      writesToPods(calls).filter((call) => call.includes('/stays-')),
      [],
    );
    assert.deepEqual(await this.#left(), before);
    assert.deepEqual(await this.#cluster.containersOf(this.#names), containers);
    this.#cluster.tell(
      `${what} with ${before.length} pods, ${containers.length} containers: healthy again after ` +
        `${seconds(tookMs)}, no write to any of them; asked: ${countsOf(calls)}`,
    );
  }

  /**
   * Waits until the statuses no longer change: a pod may be Ready a moment before its status is
   * complete.
   */
  async #quiet(): Promise<void> {
    let last = JSON.stringify(await this.#left());
    await patiently(
      'statuses to come to rest',
      async () => {
        await this.#renewed(await this.#cluster.audit.now());
        const now = JSON.stringify(await this.#left());
        const isSame = now === last;
        last = now;
        return isSame ? true : undefined;
      },
      undefined,
      longMs,
    );
  }

  async #left(): Promise<readonly Left[]> {
    const pods = await this.#cluster.allAre(this.#names, 'there', () => true);
    return pods.map((pod: Pod) => ({
      name: pod.metadata?.name,
      version: pod.metadata?.resourceVersion,
      ready: isReady(pod),
      restarts: (pod.status?.containerStatuses ?? []).map(({ restartCount }) => restartCount),
    }));
  }

  async #renewed(place: number): Promise<void> {
    await patiently(
      `the lease to be renewed ${renewals} times`,
      async () => {
        const calls = await this.#cluster.audit.since(place);
        return calls.filter(isRenewal).length >= renewals ? true : undefined;
      },
      () => this.#cluster.node.out.slice(-6_000),
      longMs,
    );
  }
}

function isRenewal({ verb, objectRef }: AuditedCall): boolean {
  return verb === 'update' && objectRef?.resource === 'leases';
}

function countsOf(calls: readonly AuditedCall[]): string {
  const counts = new Map<string, number>();
  for (const { verb, stage, objectRef } of calls) {
    if (stage !== (verb === 'watch' ? 'ResponseStarted' : 'ResponseComplete')) continue;
    const what = [verb, objectRef?.resource, objectRef?.subresource].filter((part) => part !== undefined);
    counts.set(what.join(' '), (counts.get(what.join(' ')) ?? 0) + 1);
  }
  return [...counts].map(([what, count]) => `${count} ${what}`).join(', ');
}
