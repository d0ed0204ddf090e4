import type { ExecSyncRequest, ExecSyncResponse } from '../../../src/cri/index.ts';
import type { ProbeRequest } from '../../../src/probes/index.ts';
import type { TraceEntry } from '../../simulator/index.ts';
import { type ProbeType, probeTypes } from '../sketch.ts';
import type { Rule } from './scene.ts';

/** The results of one probe of a container instance. */
export interface ProbeAnswers {
  succeeded: boolean;
  /** Consecutive failures since the last success that the current kubelet observed. */
  badInARow: number;
  /** The largest number of consecutive failures that any kubelet observed. */
  mostBadInARow: number;
}

/** The history of one instance of a container. */
export interface Instance {
  readonly id: string;
  readonly podUid: string;
  readonly sandboxId: string;
  readonly name: string;
  readonly attempt: number;
  readonly createdMs: number;
  startedMs: number | undefined;
  ended: { readonly atMs: number; readonly exitCode: number; readonly cause: string } | undefined;
  removed: boolean;
  /** When a kubelet first requested to stop the instance. */
  stopOrderedMs: number | undefined;
  postStarts: number;
  /** Whether a kubelet was, or may have been, notified that the postStart hook failed. */
  postStartFailed: boolean;
  preStops: number;
  readonly probes: Readonly<Record<ProbeType, ProbeAnswers>>;
}

/**
 * The actual history of containers, independent of what any kubelet reports. It is updated before
 * any rule reads it.
 */
export class Ledger implements Rule {
  readonly #nowMs: () => number;
  readonly #instances = new Map<string, Instance>();
  readonly #pods = new Map<string, Instance[]>();
  /** For each sandbox, the newest of its containers when all of its containers had been removed. */
  readonly #lastBefore = new Map<string, string>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  find(id: string): Instance | undefined {
    return this.#instances.get(id);
  }

  all(): Iterable<Instance> {
    return this.#instances.values();
  }

  /** All instances of the pod so far, oldest first. */
  ofPod(uid: string): readonly Instance[] {
    return this.#pods.get(uid) ?? [];
  }

  /**
   * The instances in the sandbox that were created after all earlier ones had been removed: a pod
   * whose containers all restart starts again in the same sandbox.
   */
  inSandbox(uid: string, sandboxId: string): readonly Instance[] {
    const all = this.ofPod(uid).filter((each) => each.sandboxId === sandboxId);
    const last = all.findLastIndex(({ id }) => id === this.#lastBefore.get(sandboxId));
    return all.slice(last + 1);
  }

  /** The most recently started instance of a container. */
  lastOf(uid: string, name: string): Instance | undefined {
    return this.ofPod(uid).findLast((each) => each.name === name && each.startedMs !== undefined);
  }

  entry(entry: TraceEntry): void {
    switch (entry.kind) {
      case 'container-created':
        this.#meet(entry);
        break;
      case 'container-started':
        this.#change(entry.id, { startedMs: this.#nowMs() });
        break;
      case 'container-exited': {
        const { exitCode, cause } = entry;
        this.#change(entry.id, { ended: { atMs: this.#nowMs(), exitCode, cause } });
        break;
      }
      case 'container-removed':
        this.#change(entry.id, { removed: true });
        this.#emptied(entry);
        break;
    }
  }

  #emptied({ podUid, sandboxId }: Pick<Instance, 'podUid' | 'sandboxId'>): void {
    const all = this.ofPod(podUid).filter((each) => each.sandboxId === sandboxId);
    const last = all.at(-1);
    if (last !== undefined && all.every(({ removed }) => removed)) this.#lastBefore.set(sandboxId, last.id);
  }

  calling(method: string, request: unknown): void {
    if (method === 'stopContainer') {
      const { containerId } = request as { containerId: string };
      const instance = this.find(containerId);
      if (instance !== undefined) instance.stopOrderedMs ??= this.#nowMs();
    }
    if (method === 'execSync') this.#asking(request as ExecSyncRequest);
  }

  #asking({ containerId, cmd: [program, which] }: ExecSyncRequest): void {
    const instance = this.find(containerId);
    if (instance === undefined || program !== 'hook') return;
    if (which === 'post-start') instance.postStarts++;
    else instance.preStops++;
  }

  answered({ containerId, cmd }: ExecSyncRequest, response: ExecSyncResponse | undefined): void {
    const instance = this.find(containerId);
    if (instance === undefined) return;
    const [program, which] = cmd;
    const isGood = response?.exitCode === 0;
    if (program === 'hook' && which === 'post-start' && !isGood) instance.postStartFailed = true;
    if (program === 'probe') this.#count(instance, which as ProbeType, isGood ? 'success' : 'failure');
  }

  probed({ containerId, type }: ProbeRequest, response: 'success' | 'failure'): void {
    const instance = this.find(containerId);
    if (instance !== undefined) this.#count(instance, type, response);
  }

  kubeletStarted(): void {
    for (const { probes } of this.#instances.values())
      for (const type of probeTypes) probes[type].badInARow = 0;
  }

  #count({ probes }: Instance, type: ProbeType, response: 'success' | 'failure'): void {
    const responses = probes[type];
    responses.badInARow = response === 'success' ? 0 : responses.badInARow + 1;
    responses.mostBadInARow = Math.max(responses.mostBadInARow, responses.badInARow);
    if (response === 'success') responses.succeeded = true;
  }

  #meet(entry: Pick<Instance, 'id' | 'podUid' | 'sandboxId' | 'name' | 'attempt'>): void {
    const { id, podUid, sandboxId, name, attempt } = entry;
    const answers = (): ProbeAnswers => ({ succeeded: false, badInARow: 0, mostBadInARow: 0 });
    const instance: Instance = {
      ...{ id, podUid, sandboxId, name, attempt },
      createdMs: this.#nowMs(),
      startedMs: undefined,
      ended: undefined,
      removed: false,
      stopOrderedMs: undefined,
      postStarts: 0,
      postStartFailed: false,
      preStops: 0,
      probes: { liveness: answers(), readiness: answers(), startup: answers() },
    };
    this.#instances.set(id, instance);
    const rest = this.#pods.get(podUid);
    if (rest === undefined) this.#pods.set(podUid, [instance]);
    else rest.push(instance);
  }

  #change(id: string, change: Partial<Instance>): void {
    const instance = this.find(id);
    if (instance !== undefined) Object.assign(instance, change);
  }
}
