import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ProcessIdentity, ProcessTable } from '../../src/lib/index.ts';
import { eventually, isRunning, KubelingNode, type NodePod } from '../kubeling-node.ts';
import { FragileContainerd } from './fragile-containerd.ts';
import { keepLogs } from './kept-logs.ts';
import { type MarkedPod, manifestOf, markOf } from './marked-pod.ts';

export interface RuntimePlan {
  readonly pods: number;
  /** How often containerd is killed and restarts immediately. */
  readonly kills: number;
  /** How long containerd stays down in the long downtime, which follows these kills. */
  readonly absenceMs: number;
  readonly tell: (text: string) => void;
  /** A promise whose rejection stops the test; the node is then removed. */
  readonly interrupted?: Promise<never>;
}

const signal = new AbortController().signal;
const processes = new ProcessTable();

/** The state of a pod that a downtime of its runtime must not change. */
interface Kept {
  readonly mark: string;
  readonly uid: string;
  readonly ip: string | undefined;
  readonly containerId: string | undefined;
  readonly restartCount: number | undefined;
  readonly startedAt: unknown;
  readonly ready: boolean | undefined;
}

/**
 * Kills the runtime under running pods, for a short and for a long downtime: the pods must keep
 * running unchanged, all clients must get errors, and changes requested during the downtime must be
 * applied afterwards.
 */
export class RuntimeRounds {
  readonly #node: KubelingNode;
  readonly #containerd: FragileContainerd;
  readonly #plan: RuntimePlan;
  readonly #marks: string;
  readonly #wanted = new Map<string, MarkedPod>();
  #version = 0;

  static async run(plan: RuntimePlan): Promise<void> {
    const node = await KubelingNode.open(async (dataDir) => {
      const containerd = new FragileContainerd(dataDir);
      await containerd.prepare();
      return { PATH: `${containerd.path}:${process.env['PATH']}` };
    });
    const rounds = new RuntimeRounds(node, plan);
    let end: 'well' | 'failed' = 'failed';
    try {
      await Promise.race([rounds.#all(), ...(plan.interrupted === undefined ? [] : [plan.interrupted])]);
      end = 'well';
    } catch (error) {
      plan.tell(`${node.out.slice(-3_000)}\nlogs are kept in ${await keepLogs(node.dataDir, 'runtime')}`);
      throw error;
    } finally {
      await rounds.#containerd.letBack();
      const left = await node.leave();
      if (end === 'well') assert.deepEqual(left, [], 'the machine must be as it was before');
    }
  }

  private constructor(node: KubelingNode, plan: RuntimePlan) {
    this.#node = node;
    this.#plan = plan;
    this.#containerd = new FragileContainerd(node.dataDir);
    this.#marks = join(node.dataDir, 'marks');
  }

  async #all(): Promise<void> {
    await mkdir(this.#marks);
    const { pid } = this.#node;
    for (let index = 0; index < this.#plan.pods; index++) await this.#put(`r${index}`);
    await this.#allRun();
    for (let kill = 1; kill <= this.#plan.kills; kill++) await this.#killed(kill);
    await this.#away();
    assert.equal(this.#node.pid, pid);
    assert.ok(await processes.find(pid), 'kubeling must have stayed up');
    await this.#empty();
  }

  async #put(name: string): Promise<void> {
    const pod: MarkedPod = { name, version: ++this.#version, behaviour: 'stays' };
    this.#wanted.set(name, pod);
    await this.#node.put(`${name}.yaml`, manifestOf(pod, this.#marks));
  }

  async #take(name: string): Promise<void> {
    this.#wanted.delete(name);
    await this.#node.take(`${name}.yaml`);
  }

  /**
   * Kills containerd. kubeling restarts it immediately, because kubeling started this containerd.
   */
  async #killed(round: number): Promise<void> {
    const before = await this.#kept();
    const processesBefore = await this.#processes();
    const startMs = performance.now();
    const said = this.#node.out.length;
    await this.#containerd.kill();
    await eventually('the runtime to be missed and back', async () =>
      /does not respond.*answers again/s.test(this.#node.out.slice(said)) ? true : undefined,
    );
    const backMs = performance.now() - startMs;
    await this.#ready('runtime', 'ok');
    await this.#unchanged(before, processesBefore);
    this.#plan.tell(
      `containerd killed ${round}: back after ${(backMs / 1_000).toFixed(1)} s, ${before.length} pods as they were`,
    );
  }

  /** Kills containerd, keeps it down, and changes some of the desired pods during the downtime. */
  async #away(): Promise<void> {
    const { absenceMs, tell } = this.#plan;
    const before = await this.#kept();
    const processesBefore = await this.#processes();
    const startMs = performance.now();
    await this.#containerd.keepAway();
    await this.#containerd.kill();
    await this.#toldAway();
    tell(`containerd away: told after ${((performance.now() - startMs) / 1_000).toFixed(1)} s`);
    await this.#changeMeanwhile(processesBefore);
    while (performance.now() - startMs < absenceMs) {
      await this.#stillThere(before, processesBefore);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
    await this.#toldAway();
    tell(`containerd away for ${((performance.now() - startMs) / 1_000).toFixed(0)} s: all processes live`);
    await this.#containerd.letBack();
    const backMs = performance.now();
    await this.#ready('runtime', 'ok');
    tell(`let back: ready after ${((performance.now() - backMs) / 1_000).toFixed(1)} s`);
    await this.#allRun();
    await this.#carriedOut(before, processesBefore);
    tell(`what was asked for meanwhile is done after ${((performance.now() - backMs) / 1_000).toFixed(1)} s`);
  }

  /**
   * During the downtime one pod is removed, one is edited, one is added, and the container process
   * of another pod is killed.
   */
  async #changeMeanwhile(before: ReadonlyMap<string, ProcessIdentity>): Promise<void> {
    const dies = before.get('r2');
    assert.ok(dies);
    await processes.signal(dies, 'SIGKILL');
    await this.#take('r0');
    await this.#put('r1');
    await this.#put('new');
  }

  async #carriedOut(before: readonly Kept[], were: ReadonlyMap<string, ProcessIdentity>): Promise<void> {
    const changed = new Set(['r0', 'r1', 'r2']);
    const rest = before.filter(({ mark }) => !changed.has(nameOf(mark)));
    await this.#unchanged(rest, new Map([...were].filter(([name]) => !changed.has(name))), this.#wanted.size);
    const after = await this.#kept();
    const died = after.find(({ mark }) => nameOf(mark) === 'r2');
    assert.equal(died?.restartCount, 1, 'the one whose process died meanwhile was started again once');
    await eventually('nothing to be left of what was removed', async () => {
      const containers = [...(await this.#node.containersOf('r0')), ...(await this.#node.containersOf('r1'))];
      return containers.length === 1 ? true : undefined;
    });
  }

  async #allRun(): Promise<void> {
    let missing: readonly string[] = [];
    await eventually(
      'all pods to run as wanted',
      async () => {
        const running = new Set((await this.#kept()).map(({ mark }) => mark));
        missing = [...this.#wanted.values()].map(markOf).filter((mark) => !running.has(mark));
        return missing.length === 0 && running.size === this.#wanted.size ? true : undefined;
      },
      90_000,
      () => missing.join(' '),
    );
  }

  /** Returns the running pods as reported by kubeling. */
  async #kept(): Promise<readonly Kept[]> {
    const shown = (await this.#node.pods()).filter(
      ({ status: { containerStatuses = [] } }) =>
        containerStatuses.length > 0 && containerStatuses.every(isRunning),
    );
    return shown.map(keptOf).toSorted((each, other) => (each.mark < other.mark ? -1 : 1));
  }

  /** Returns the process of each pod's container by the pod's name. */
  async #processes(): Promise<ReadonlyMap<string, ProcessIdentity>> {
    const filter = { state: { state: 'CONTAINER_RUNNING' } } as const;
    const { containers } = await this.#node.cri.listContainers({ filter }, signal);
    const found = new Map<string, ProcessIdentity>();
    for (const { id, labels } of containers) {
      const { info } = await this.#node.cri.containerStatus({ containerId: id, verbose: true }, signal);
      const { pid } = JSON.parse(info['info'] ?? '{}');
      const process = await processes.find(pid);
      assert.ok(process, `the container ${id} must have a process`);
      found.set(nameOf(labels['io.kubernetes.pod.name'] ?? ''), process);
    }
    return found;
  }

  async #unchanged(
    before: readonly Kept[],
    were: ReadonlyMap<string, ProcessIdentity>,
    expected = before.length,
  ): Promise<void> {
    const after = await this.#kept();
    const marks = new Set(before.map(({ mark }) => mark));
    assert.deepEqual(
      after.filter(({ mark }) => marks.has(mark)),
      before,
    );
    assert.equal(after.length, expected);
    for (const [name, process] of were)
      assert.ok(await processes.isAlive(process), `the process of ${name} must live`);
    for (const pod of this.#wanted.values()) {
      if (!marks.has(markOf(pod))) continue;
      const lines = (await readFile(join(this.#marks, markOf(pod)), 'utf8')).trim().split('\n');
      assert.equal(lines.length, 1, `${markOf(pod)} was started ${lines.length} times`);
    }
  }

  /** During the downtime kubeling must report the last known state, and the processes must run. */
  async #stillThere(before: readonly Kept[], were: ReadonlyMap<string, ProcessIdentity>): Promise<void> {
    for (const [name, process] of were)
      if (name !== 'r2') assert.ok(await processes.isAlive(process), `the process of ${name} must live`);
    assert.equal(await this.#node.get('/healthz'), 'ok');
    const untouched = before.filter(
      ({ mark }) => this.#wanted.get(nameOf(mark))?.version === versionOf(mark),
    );
    const marks = new Set(untouched.map(({ mark }) => mark));
    assert.deepEqual(
      (await this.#kept()).filter(({ mark }) => marks.has(mark)),
      untouched,
    );
  }

  async #toldAway(): Promise<void> {
    await this.#ready('runtime', 'container runtime');
    assert.match(await this.#node.command('status'), /does not respond/);
    const readyz = await this.#node.get('/readyz');
    assert.match(readyz, /\[-\]runtime failed: .*readyz check failed/s);
  }

  /** Waits until the response of `/readyz/<check>` contains the given text. */
  async #ready(check: string, says: string): Promise<void> {
    let last = '';
    await eventually(
      `the check ${check} to say "${says}"`,
      async () => {
        last = await this.#node.get(`/readyz/${check}`);
        return last.includes(says) ? true : undefined;
      },
      60_000,
      () => last,
    );
  }

  async #empty(): Promise<void> {
    for (const name of [...this.#wanted.keys()]) await this.#take(name);
    await eventually('the node to be empty', async () => {
      const { containers } = await this.#node.cri.listContainers({}, signal);
      return containers.length === 0 && (await this.#node.pods()).length === 0 ? true : undefined;
    });
  }
}

function keptOf({ metadata, status }: NodePod): Kept {
  const container = status.containerStatuses?.[0];
  return {
    mark: `${nameOf(metadata.name)}.${metadata.annotations?.['version']}`,
    uid: metadata.uid,
    ip: status.podIP,
    containerId: container?.containerID,
    restartCount: container?.restartCount,
    startedAt: container?.state?.running?.startedAt,
    ready: container?.ready,
  };
}

/**
 * Returns the pod name alone: without the version in the name of a mark file, and without the node
 * name in a name that kubeling reports.
 */
function nameOf(text: string): string {
  return text.split(/[.-]/)[0] ?? '';
}

function versionOf(mark: string): number {
  return Number(mark.split('.')[1]);
}
