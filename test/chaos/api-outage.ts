import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Pod } from '../../src/kinds/index.ts';
import { isReady } from '../cluster/cluster-pods.ts';
import { patiently } from '../cluster/patiently.ts';
import { type FaultyCluster, longMs, uptimeSeconds } from './faulty-cluster.ts';
import { bound, execProbe, manifoldPod, marked, markedPod } from './faulty-pods.ts';

export interface OutagePlan {
  readonly awayMs: number;
  /** The number of pods that run without restarts or changes. */
  readonly calm: number;
}

interface PodEvent {
  readonly reason?: string;
  readonly count?: number;
  readonly lastTimestamp?: string;
}

const lookMs = 1_000;
/** The crash back-off before each restart, in seconds; the first restart has none. */
const backoffSeconds = [10, 20, 40, 80, 160, 300];
/**
 * The tolerance for back-offs: they have a jitter of up to one half, so that pods do not restart at
 * the same time, and a busy machine adds delays.
 */
const latest = (waitSeconds: number) => waitSeconds * 1.5 + 15;

/**
 * Stops the API server of a node with pods that run, crash and are probed, and with pods that are
 * created and deleted. All work that does not need the API must continue, and nothing else may
 * change; after the restart of the server all statuses are published, and the node applies the pod
 * changes that it missed.
 */
export class ApiOutage {
  readonly #cluster: FaultyCluster;
  readonly #plan: OutagePlan;
  /** Pods whose containers must not restart. */
  readonly #healthy: readonly string[];
  readonly #fixed: string;
  readonly #late: string;
  readonly #goes: string;

  static async run(cluster: FaultyCluster, plan: OutagePlan): Promise<void> {
    await new ApiOutage(cluster, plan).#all();
  }

  private constructor(cluster: FaultyCluster, plan: OutagePlan) {
    this.#cluster = cluster;
    this.#plan = plan;
    const { name } = cluster.node;
    [this.#fixed, this.#late, this.#goes] = [`fixed-${name}`, `late-${name}`, `goes-${name}`];
    const calm = Array.from({ length: plan.calm }, (_, index) => `calm-${index}`);
    this.#healthy = [...calm, 'manifold', 'probed', 'reader', this.#fixed];
  }

  async #all(): Promise<void> {
    const { node, plane, door, tell } = this.#tools();
    await this.#prepare();
    const before = await this.#cluster.containersOf(this.#healthy);
    const uids = await this.#uids();
    const startedMs = Date.now();
    await plane.stopApiServer();
    await door.shut();
    await this.#changeOnNode();
    const probes = await this.#watchNode(before);
    await this.#seenOnNode();
    tell(
      `away for ${seconds(Date.now() - startedMs)}: probed ${probes} times, ${before.length} containers as they were`,
    );
    await plane.startApiServer();
    await this.#changeInApi();
    await door.reopen();
    await this.#heard(startedMs);
    assert.deepEqual(await this.#cluster.containersOf(this.#healthy), before);
    assert.deepEqual(await this.#uids(), uids);
    await this.#startedOnce();
    await node.ready();
    await this.#clean();
  }

  #tools() {
    const { node, plane, door } = this.#cluster;
    return { node, plane, door, tell: (text: string) => this.#cluster.tell(text) };
  }

  async #prepare(): Promise<void> {
    const { node, plane } = this.#tools();
    const make = (name: string, fields: object = {}) => markedPod(this.#cluster, name, fields);
    await plane.kubectl('create', 'configmap', 'words', '--from-literal=word=first');
    await this.#cluster.mark('probed.well');
    const readinessProbe = execProbe('echo >> /marks/probed.probes; test -e /marks/probed.well');
    const livenessProbe = execProbe('test ! -e /marks/sick.now');
    const wellAgain = 'rm -f /marks/sick.now; trap "exit 0" TERM; sleep 100000 & wait';
    const file = { name: 'file', configMap: { name: 'words' } };
    const read =
      'trap "exit 0" TERM; while true; do cp /file/word /marks/reader.word; sleep 1 & wait $!; done';
    const fileMounts = [
      { name: 'marks', mountPath: '/marks' },
      { name: 'file', mountPath: '/file' },
    ];
    await plane.apply(
      ...this.#healthy.filter((name) => name.startsWith('calm-')).map((name) => make(name)),
      manifoldPod(this.#cluster, 'manifold'),
      make('probed', { containers: [marked('probed', undefined, { readinessProbe })] }),
      make('sick', { containers: [marked('sick', wellAgain, { livenessProbe })] }),
      make('reader', { containers: [marked('reader', read, { volumeMounts: fileMounts })], volumes: [file] }),
      ...['leaving', 'forced'].map((name) => make(name)),
    );
    await node.put('fixed.json', make('fixed'));
    await node.put('goes.json', make('goes'));
    const ready = [...this.#healthy, 'sick', 'leaving', 'forced', this.#goes];
    await this.#cluster.allAre(ready, 'Ready', isReady);
    await plane.apply(make('crashing', { containers: [marked('crashing', 'sleep 1; exit 3')] }));
    await this.#cluster.allAre(['crashing'], 'started', ({ status }) => status?.phase === 'Running');
  }

  async #uids(): Promise<readonly (string | undefined)[]> {
    const pods = await this.#cluster.pods();
    return this.#healthy.map((name) => pods.get(name)?.metadata?.uid);
  }

  /** Makes changes that need no API: to manifests, and to the state of containers. */
  async #changeOnNode(): Promise<void> {
    const { node } = this.#cluster;
    await this.#cluster.unmark('probed.well');
    await this.#cluster.mark('sick.now');
    await node.take('goes.json');
    await node.put('late.json', markedPod(this.#cluster, 'late'));
  }

  /** Observes the node until the outage ends; returns how often a pod was probed. */
  async #watchNode(before: readonly string[]): Promise<number> {
    const { awayMs } = this.#plan;
    const endMs = performance.now() + awayMs;
    const first = (await this.#cluster.marks('probed.probes')).length;
    while (performance.now() < endMs) {
      assert.deepEqual(await this.#cluster.containersOf(this.#healthy), before);
      process.kill(this.#cluster.node.pid, 0);
      await delay(lookMs);
    }
    const probes = (await this.#cluster.marks('probed.probes')).length - first;
    // On an idle machine the pod is probed every second.
    assert.ok(probes >= awayMs / 5_000, `the pod was probed ${probes} times in ${seconds(awayMs)}`);
    return probes;
  }

  async #seenOnNode(): Promise<void> {
    assert.equal(
      (await this.#cluster.starts('sick')).length,
      2,
      'one that is not alive is started again, once',
    );
    assert.equal((await this.#cluster.containersOf([this.#late])).length, 1, 'a new manifest is a new pod');
    assert.deepEqual(await this.#cluster.containersOf([this.#goes]), [], 'without its manifest a pod goes');
    assert.equal((await this.#cluster.containersOf(['leaving', 'forced'])).length, 2);
    await this.#backedOff();
  }

  async #backedOff(): Promise<void> {
    const starts = await this.#cluster.starts('crashing');
    const gaps = starts.slice(1).map((start, index) => start - (starts[index] ?? 0));
    this.#cluster.tell(`crashed: started again after ${gaps.map((gap) => gap.toFixed(1)).join(', ')} s`);
    for (const [index, gap] of gaps.slice(1).entries()) {
      const least = backoffSeconds[index] ?? 300;
      assert.ok(gap >= least, `start ${index + 2} came after ${gap} s, too early`);
      assert.ok(gap <= latest(least), `start ${index + 2} came after ${gap} s, too late`);
    }
    // The next restart of the crashing container must not be overdue.
    const due = backoffSeconds[gaps.length - 1] ?? 300;
    const waited = (await uptimeSeconds()) - (starts.at(-1) ?? 0);
    assert.ok(gaps.length === 0 || waited <= latest(due), `nothing was started for ${waited} s`);
    assert.ok(gaps.length > 0, 'what crashes is started again');
  }

  /** Pods are changed in the API while the node cannot receive the changes. */
  async #changeInApi(): Promise<void> {
    const { node, plane } = this.#tools();
    const make = (name: string) => bound(markedPod(this.#cluster, name), node.name);
    await plane.kubectl('delete', 'pod', 'leaving', '--wait=false');
    await plane.kubectl('delete', 'pod', 'forced', '--force', '--grace-period=0');
    await plane.kubectl('patch', 'configmap', 'words', '-p', '{"data":{"word":"second"}}');
    await plane.apply(make('forced'), make('made'));
  }

  async #heard(startedMs: number): Promise<void> {
    const openMs = performance.now();
    const reported: string[] = [];
    const timed = async (what: string, done: Promise<unknown>) => {
      await done;
      reported.push(`${what} ${seconds(performance.now() - openMs)}`);
    };
    const is = (name: string, what: string, wanted: (pod: Pod) => boolean) =>
      this.#cluster.allAre([name], what, wanted);
    const steady = this.#healthy.filter((name) => name !== 'probed');
    const restarts = (await this.#cluster.starts('crashing')).length - 1;
    await Promise.all([
      timed('node Ready', this.#cluster.node.ready()),
      timed('pod made meanwhile', is('made', 'Ready', isReady)),
      timed('pod of the same name', is('forced', 'Ready', isReady)),
      timed('deleted pod gone', this.#cluster.allAreGone(['leaving'])),
      timed(
        'restarts',
        is('crashing', 'counted', (pod) => restartsOf(pod) >= restarts),
      ),
      timed(
        'liveness',
        is('sick', 'restarted', (pod) => isReady(pod) && restartsOf(pod) === 1),
      ),
      timed(
        'readiness',
        is('probed', 'not Ready', (pod) => !isReady(pod)),
      ),
      timed('static pod', is(this.#late, 'Ready', isReady)),
      timed('static pod gone', this.#cluster.allAreGone([this.#goes])),
      timed('config map', this.#word('second')),
      timed('events', this.#events(startedMs, restarts)),
      timed('all others Ready', this.#cluster.allAre(steady, 'Ready', isReady)),
    ]);
    this.#cluster.tell(`after its return: ${reported.join(', ')}`);
    assert.equal((await this.#cluster.starts('forced')).length, 2);
    await this.#cluster.mark('probed.well');
    await is('probed', 'Ready', isReady);
  }

  async #word(word: string): Promise<void> {
    const look = async () => ((await this.#cluster.text('reader.word')) === word ? true : undefined);
    await patiently(`the file to say ${word}`, look, undefined, longMs);
  }

  /** Checks the pod events of the outage. */
  async #events(startedMs: number, restarts: number): Promise<void> {
    const count = (events: readonly PodEvent[], reason: string) =>
      events.filter((event) => event.reason === reason).reduce((sum, event) => sum + (event.count ?? 1), 0);
    let last: readonly PodEvent[] = [];
    await patiently(
      'events of what happened meanwhile',
      async () => {
        last = await this.#eventsOf('crashing');
        const isLate = last.some(({ lastTimestamp }) => Date.parse(lastTimestamp ?? '') > startedMs);
        const sick = await this.#eventsOf('sick');
        const all = count(last, 'Started') > restarts && count(sick, 'Killing') > 0;
        return isLate && all && count(last, 'BackOff') > 0 ? true : undefined;
      },
      () => JSON.stringify(last, undefined, 1),
      longMs,
    );
  }

  async #eventsOf(name: string): Promise<readonly PodEvent[]> {
    const path = `/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=${name}`;
    const list = await this.#cluster.plane.get<{ readonly items: readonly PodEvent[] }>(path);
    return list?.items ?? [];
  }

  async #startedOnce(): Promise<void> {
    for (const name of this.#healthy) {
      const starts = await this.#cluster.starts(name.replace(`-${this.#cluster.node.name}`, ''));
      assert.equal(starts.length, 1, `${name} was started ${starts.length} times`);
    }
  }

  async #clean(): Promise<void> {
    const { node, plane } = this.#tools();
    await node.take('fixed.json');
    await node.take('late.json');
    await this.#cluster.allAreGone([this.#fixed, this.#late]);
    const names = [...(await this.#cluster.pods()).keys()];
    await this.#cluster.remove(names);
    await plane.kubectl('delete', 'configmap', 'words');
  }
}

function restartsOf({ status }: Pod): number {
  return status?.containerStatuses?.[0]?.restartCount ?? 0;
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
