import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ContainerStatus } from '../../src/kinds/index.ts';
import { pick, type Random, randomInt, seededRandom } from '../../src/lib/index.ts';
import { eventually, isRunning, KubelingNode, type NodePod } from '../kubeling-node.ts';
import { keepLogs } from './kept-logs.ts';
import { Leftovers } from './leftovers.ts';
import { type Behaviour, type MarkedPod, manifestOf, markOf } from './marked-pod.ts';
import { type Instance, Witness } from './witness.ts';

export interface KillPlan {
  readonly kills: number;
  readonly seed: number;
  readonly tell: (text: string) => void;
  /** A promise whose rejection stops the test; the node is then removed. */
  readonly interrupted?: Promise<never>;
}

export interface KillReport {
  readonly kills: number;
  /** The number of kills before kubeling was ready. */
  readonly killsAtStart: number;
  readonly versions: number;
  readonly starts: number;
  /** The number of containers of unchanged pods that were still running after a kill. */
  readonly kept: number;
  /** The number of starts that the runtime aborted because kubeling was killed. */
  readonly cutShort: number;
  readonly restarts: number;
}

const pods = 10;
const signal = new AbortController().signal;
/** The maximum time from ready to the kill; enough for a few changes. */
const longestLifeMs = 3_000;
const longestStartMs = 1_500;
const longestGapMs = 500;
/** The number of restarts after which the node gets enough time to reach the desired state. */
const settleEvery = 4;
/** The behaviours of new pods. One in three pods crashes, exits or is otherwise unstable. */
const behaviours: readonly Behaviour[] = [
  'stays',
  'stays',
  'stays',
  'prepares',
  'prepares',
  'lingers',
  'crashes',
  'crashes',
  'ends',
];
const runs: ReadonlySet<Behaviour> = new Set(['stays', 'prepares', 'lingers'] as const);

/** A desired version of a pod, and the number of kills it has survived. */
interface Wanted extends MarkedPod {
  readonly sinceKill: number;
}

/**
 * Kills kubeling repeatedly while pods are added, crash, are edited and are removed, and compares
 * the runtime's state with the desired one: no container may start twice, no unchanged container
 * may restart, and restart counts must be correct.
 */
export class KillRounds {
  readonly #node: KubelingNode;
  readonly #witness: Witness;
  readonly #leftovers: Leftovers;
  readonly #random: Random;
  readonly #plan: KillPlan;
  readonly #wanted = new Map<string, Wanted>();
  readonly #marks: string;
  /** The highest reported restart count of each version's container. */
  readonly #counts = new Map<string, number>();
  /** The actions since the last kill, printed when a check fails. */
  #moment: string[] = [];
  #versions = 0;
  #kills = 0;
  #killsAtStart = 0;
  #kept = 0;

  static async run(plan: KillPlan): Promise<KillReport> {
    const node = await KubelingNode.open();
    let report: KillReport | undefined;
    try {
      report = await KillRounds.#on(node, plan);
    } finally {
      const left = await node.leave();
      if (report !== undefined) assert.deepEqual(left, [], 'the machine must be as it was before');
    }
    return report;
  }

  static async #on(node: KubelingNode, plan: KillPlan): Promise<KillReport> {
    await mkdir(join(node.dataDir, 'marks'));
    await using witness = await Witness.open(node.cri);
    const rounds = new KillRounds(node, witness, await Leftovers.before(node), plan);
    try {
      await Promise.race([rounds.#all(), ...(plan.interrupted === undefined ? [] : [plan.interrupted])]);
    } catch (error) {
      const retained = await keepLogs(node.dataDir, `kill-${plan.seed}`);
      plan.tell(`${rounds.#where()}\n\nlogs are kept in ${retained}`);
      throw error;
    }
    return rounds.#report();
  }

  private constructor(node: KubelingNode, witness: Witness, leftovers: Leftovers, plan: KillPlan) {
    this.#node = node;
    this.#witness = witness;
    this.#leftovers = leftovers;
    this.#plan = plan;
    this.#random = seededRandom(plan.seed);
    this.#marks = join(node.dataDir, 'marks');
  }

  async #all(): Promise<void> {
    for (let index = 0; index < pods; index++) await this.#put(`p${index}`);
    // In half of the runs the first kill happens while all pods start.
    if (randomInt(this.#random, 2) === 0) await this.#settle();
    for (let life = 1; this.#kills < this.#plan.kills; life++) {
      await this.#life();
      if (life % settleEvery === 0) await this.#settle();
    }
    await this.#settle();
    await this.#empty();
  }

  /** Changes pods until the kill, which follows after a random time once kubeling is ready. */
  async #life(): Promise<void> {
    for (let changes = randomInt(this.#random, 4); changes > 0; changes--) {
      await this.#change();
      await this.#pause(longestGapMs);
    }
    await this.#pause(longestLifeMs);
    const before = await this.#resting();
    await this.#kill();
    if (randomInt(this.#random, 3) === 0) await this.#change();
    while (this.#kills < this.#plan.kills && randomInt(this.#random, 3) === 0) await this.#killAtStart();
    await this.#node.start();
    this.#note('ready');
    await this.#check();
    const retained = before.filter(({ uid, mark }) => uid !== '' && this.#wantedAs(mark) !== undefined);
    const running = new Set(await this.#runningIds());
    for (const { id, mark } of retained)
      assert.ok(running.has(id), `${mark} was lost: ${id} does not run any more`);
    this.#kept += retained.length;
    this.#plan.tell(
      `kill ${String(this.#kills).padStart(3)}: ${retained.length} pods run on, ${this.#witness.instances.length} starts so far`,
    );
  }

  async #kill(): Promise<void> {
    await this.#node.end('SIGKILL');
    this.#kills++;
    this.#note(`kill ${this.#kills}`);
    await this.#check();
  }

  async #killAtStart(): Promise<void> {
    this.#node.launch();
    this.#note('launched');
    await this.#pause(longestStartMs);
    this.#killsAtStart++;
    await this.#kill();
  }

  async #change(): Promise<void> {
    const name = `p${randomInt(this.#random, pods)}`;
    if (this.#wanted.has(name) && randomInt(this.#random, 3) === 0) await this.#take(name);
    else await this.#put(name);
  }

  async #put(name: string): Promise<void> {
    const behaviour = pick(this.#random, behaviours) ?? 'stays';
    const pod = { name, version: ++this.#versions, behaviour, sinceKill: this.#kills };
    this.#wanted.set(name, pod);
    this.#note(`put ${markOf(pod)}, which ${behaviour}`);
    await this.#node.put(`${name}.yaml`, manifestOf(pod, this.#marks));
  }

  async #take(name: string): Promise<void> {
    this.#wanted.delete(name);
    this.#note(`took ${name}`);
    await this.#node.take(`${name}.yaml`);
  }

  async #pause(longestMs: number): Promise<void> {
    const ms = randomInt(this.#random, longestMs);
    await new Promise((resolve) => setTimeout(resolve, ms));
  }

  #note(text: string): void {
    if (text.startsWith('kill')) this.#moment = this.#moment.slice(-20);
    this.#moment.push(`${(performance.now() / 1_000).toFixed(3)} s: ${text}`);
  }

  #where(): string {
    return [`seed ${this.#plan.seed}, after kill ${this.#kills}:`, ...this.#moment].join('\n  ');
  }

  /**
   * Returns the containers that run now and must keep running: those of desired, unchanged pods
   * that do not exit by themselves.
   */
  async #resting() {
    await this.#witness.idle();
    const marks = await this.#marksByUid();
    const running = new Set(await this.#runningIds());
    return this.#witness.instances
      .map(({ id, uid, container }) => ({ id, uid, container, mark: marks.get(uid) ?? '' }))
      .filter(({ id, container, mark }) => {
        const expected = this.#wantedAs(mark);
        return (
          expected !== undefined && runs.has(expected.behaviour) && container === 'main' && running.has(id)
        );
      });
  }

  async #runningIds(): Promise<readonly string[]> {
    const filter = { state: { state: 'CONTAINER_RUNNING' } } as const;
    return (await this.#node.cri.listContainers({ filter }, signal)).containers.map(({ id }) => id);
  }

  async #marksByUid(): Promise<ReadonlyMap<string, string>> {
    const { items } = await this.#node.cri.listPodSandbox({}, signal);
    return new Map(
      items.map(({ metadata, annotations }) => [
        metadata?.uid ?? '',
        markAs(metadata?.name ?? '', annotations['version']),
      ]),
    );
  }

  #wantedAs(mark: string): Wanted | undefined {
    const expected = this.#wanted.get(mark.split('.')[0] ?? '');
    return expected !== undefined && markOf(expected) === mark ? expected : undefined;
  }

  /** Checks the invariants that hold at any moment, whether kubeling runs or not. */
  async #check(): Promise<void> {
    await this.#witness.idle();
    assert.deepEqual(this.#witness.problems, []);
    const ready = { filter: { state: { state: 'SANDBOX_READY' } } } as const;
    const { items } = await this.#node.cri.listPodSandbox(ready, signal);
    for (const [uid, sandboxes] of Map.groupBy(items, ({ metadata }) => metadata?.uid))
      assert.equal(sandboxes.length, 1, `the pod ${uid} has ${sandboxes.length} sandboxes`);
    const marks = await this.#marksByUid();
    for (const pod of this.#wanted.values()) await this.#checkStarts(pod, marks);
  }

  /**
   * Compares the starts of each desired pod according to the runtime's events with the lines that
   * its containers wrote when they started.
   */
  async #checkStarts(pod: Wanted, marks: ReadonlyMap<string, string>): Promise<void> {
    const mark = markOf(pod);
    const instances = this.#witness.instances.filter(({ uid }) => marks.get(uid) === mark);
    for (const [container, list] of Map.groupBy(instances, (each) => each.container)) {
      if (pod.behaviour === 'crashes') continue;
      // Only a start that was interrupted by a kill may be repeated.
      const again = list.slice(0, -1).filter(({ end }) => !wasCutShort(end));
      const reported = list.map(({ attempt, end }) => `${attempt}: ${end ?? 'runs'}`).join('; ');
      assert.equal(again.length, 0, `${container} of ${mark} was started again without need: ${reported}`);
    }
    const ids = (await this.#markedIds(pod)).filter((line) => line.includes(' '));
    assert.equal(new Set(ids).size, ids.length, `a container of ${mark} ran twice: ${ids}`);
  }

  async #markedIds(pod: MarkedPod): Promise<readonly string[]> {
    const text = await readFile(join(this.#marks, markOf(pod)), 'utf8').catch(() => '');
    return text.split('\n').filter((line) => line !== '');
  }

  /** Waits until the actual state is the desired one, then compares the restart counts. */
  async #settle(): Promise<void> {
    let missing = '';
    await eventually(
      'the node to be as wanted',
      async () => {
        missing = await this.#missing();
        return missing === '' ? true : undefined;
      },
      90_000,
      () => missing,
    );
    this.#note('settled');
    await this.#check();
    for (const pod of this.#wanted.values()) await this.#checkCounts(pod);
  }

  async #missing(): Promise<string> {
    const shown = await this.#node.pods();
    const unsettled = [...this.#wanted.values()].filter(
      (pod) => !shown.some((each) => keyOf(each) === markOf(pod) && isSettled(pod.behaviour, each)),
    );
    const { items } = await this.#node.cri.listPodSandbox({}, signal);
    const strays = items
      .map(({ metadata, annotations }) => markAs(metadata?.name ?? '', annotations['version']))
      .filter((mark) => this.#wantedAs(mark) === undefined);
    if (unsettled.length === 0 && strays.length === 0 && shown.length === this.#wanted.size) return '';
    return JSON.stringify({ unsettled, strays, pods: shown.map(briefly) }, undefined, 1);
  }

  /**
   * Returns the pods of kubeling's /pods endpoint once they match the runtime: a crashing container
   * may be restarted at any moment.
   */
  async #checkCounts(pod: Wanted): Promise<void> {
    const key = markOf(pod);
    let reported = '';
    const { restartCount, after } = await eventually(
      'the count of restarts to be right',
      async () => {
        const before = await this.#highestAttempt(pod);
        const found = (await this.#node.pods()).find((each) => keyOf(each) === key);
        const after = await this.#highestAttempt(pod);
        const { restartCount = -1 } = mainOf(found) ?? {};
        reported = `${key}, which ${pod.behaviour}: ${restartCount} restarts told, attempt ${before} to ${after} in the runtime`;
        return before <= restartCount && restartCount <= after ? { restartCount, after } : undefined;
      },
      15_000,
      () => reported,
    );
    assert.ok(
      restartCount >= (this.#counts.get(key) ?? 0),
      `${reported}, ${this.#counts.get(key)} restarts before`,
    );
    this.#counts.set(key, restartCount);
    const lives = this.#kills - pod.sinceKill;
    let starts = 0;
    // The mark file may have fewer lines than the restart count indicates: a container is reported
    // as running before its program writes a line, and a container that was created but not started
    // before a kill counts as a restart.
    await eventually(
      'all starts to be marked',
      async () => {
        starts = (await this.#markedIds(pod)).filter((line) => line.startsWith('main')).length;
        return starts > 0 && starts + lives > restartCount ? starts : undefined;
      },
      15_000,
      () => `${reported}, ${starts} starts marked, ${lives} kills lived through`,
    );
    // Allows a difference, because a container may start between reading the status and reading the
    // mark file.
    assert.ok(starts <= after + 2, `${reported}, ${starts} starts marked, ${lives} kills lived through`);
    if (pod.behaviour !== 'crashes') assert.ok(restartCount <= lives, reported);
  }

  async #highestAttempt(pod: MarkedPod): Promise<number> {
    const marks = await this.#marksByUid();
    const { containers } = await this.#node.cri.listContainers({}, signal);
    const attempts = containers
      .filter(({ labels }) => marks.get(labels['io.kubernetes.pod.uid'] ?? '') === markOf(pod))
      .filter(({ metadata }) => metadata?.name === 'main')
      .map(({ metadata }) => metadata?.attempt ?? 0);
    return Math.max(-1, ...attempts);
  }

  async #empty(): Promise<void> {
    for (const name of [...this.#wanted.keys()]) await this.#take(name);
    let left: readonly string[] = [];
    await eventually(
      'the node to be empty',
      async () => {
        left = [
          ...(await this.#node.pods()).map(keyOf),
          ...(await this.#leftovers.find(this.#witness.words)),
        ];
        return left.length === 0 ? true : undefined;
      },
      60_000,
      () => left.join('\n'),
    );
    await this.#check();
  }

  #report(): KillReport {
    const { instances } = this.#witness;
    return {
      kills: this.#kills,
      killsAtStart: this.#killsAtStart,
      versions: this.#versions,
      starts: instances.length,
      kept: this.#kept,
      cutShort: instances.filter(({ end }) => wasCutShort(end)).length,
      restarts: instances.filter(({ attempt }: Instance) => attempt > 0).length,
    };
  }
}

/**
 * Whether the runtime reports an aborted start: it aborts a start whose caller was killed, even
 * when the process has begun to run.
 */
function wasCutShort(end: string | undefined): boolean {
  return end?.startsWith('StartError') ?? false;
}

function isSettled(behaviour: Behaviour, pod: NodePod): boolean {
  const main = mainOf(pod);
  if (main === undefined) return false;
  if (behaviour === 'crashes') return main.restartCount > 0;
  if (behaviour === 'ends') return pod.status.phase === 'Succeeded';
  return isRunning(main);
}

function mainOf(pod: NodePod | undefined): ContainerStatus | undefined {
  return pod?.status.containerStatuses?.[0];
}

function keyOf({ metadata }: NodePod): string {
  return markAs(metadata.name, metadata.annotations?.['version']);
}

/** kubeling appends the node name to the names of static pods, so it is removed here. */
function markAs(podName: string, version: string | undefined): string {
  return `${podName.split('-')[0]}.${version}`;
}

function briefly({ metadata, status }: NodePod): unknown {
  return { metadata, phase: status.phase, containers: status.containerStatuses };
}
