import type { Container, ContainerStatus, PodStatus } from '../../src/kinds/index.ts';
import { collectLogs, MetricRegistry, type Random, seededRandom } from '../../src/lib/index.ts';
import type { Pod, PodUid } from '../../src/pods/index.ts';
import {
  type ProbeChange,
  ProbeManager,
  type ProbeRequest,
  type ProbeResult,
  probeMetrics,
} from '../../src/probes/index.ts';
import { RecordedJournal } from './journal.ts';
import { aPod, type PodParts } from './pods.ts';
import { type ScriptedAnswer, scriptedProber } from './scripted-prober.ts';
import { VirtualClock } from './virtual-clock.ts';

export interface ProbeRigOptions {
  readonly container?: Partial<Container>;
  readonly sidecar?: Partial<Container>;
  readonly pod?: PodParts;
  readonly random?: Random;
  /**
   * How long the kubelet runs before the pod is added; by default long enough that probes start
   * without a random delay.
   */
  readonly uptimeMs?: number;
}

/**
 * The probes of one pod under virtual time: the test sets the state of the container and the
 * responses to the probes.
 */
export class ProbeRig implements AsyncDisposable {
  readonly clock = new VirtualClock();
  readonly logs = collectLogs(this.clock);
  readonly journal = new RecordedJournal();
  readonly registry = new MetricRegistry({ onError: () => {} });
  readonly manager: ProbeManager;
  readonly pod: Pod;
  readonly changes: ProbeChange[] = [];
  /** The executed probes with their times. */
  readonly asked: (ProbeRequest & { readonly atMs: number })[] = [];
  answer: (question: ProbeRequest) => ScriptedAnswer = () => ({ is: 'success' });
  status: PodStatus | undefined;
  terminating = false;
  readonly #uptimeMs: number;

  constructor({ container, sidecar, pod, random, uptimeMs = 60_000 }: ProbeRigOptions = {}) {
    this.#uptimeMs = uptimeMs;
    const main = { name: 'main', image: 'x', ...container };
    const initContainers = [{ name: 'side', image: 'x', restartPolicy: 'Always', ...sidecar }];
    this.pod = aPod({
      ...pod,
      spec: { containers: [main], ...(sidecar !== undefined && { initContainers }), ...pod?.spec },
    });
    const prober = scriptedProber({
      clock: this.clock,
      script: (question) => {
        this.asked.push({ ...question, atMs: this.nowMs });
        return this.answer(question);
      },
    });
    this.manager = new ProbeManager({
      clock: this.clock,
      random: random ?? seededRandom(1),
      logger: this.logs.logger,
      journal: this.journal,
      prober,
      observer: probeMetrics(this.registry),
      statusOf: () => this.status,
      isTerminating: () => this.terminating,
      expand: (word) => word,
      startedAt: this.clock.now(),
      startedMs: this.clock.monotonicMs(),
      changed: (change) => this.#changed(change),
    });
  }

  get uid(): PodUid {
    return this.pod.metadata.uid;
  }

  /** The time since the pod was added. */
  get nowMs(): number {
    return this.clock.monotonicMs() - this.#uptimeMs;
  }

  get askedAt(): readonly number[] {
    return this.asked.map(({ atMs }) => atMs);
  }

  get events(): readonly string[] {
    return this.journal.events.map(({ reason, message }) => `${reason} ${message}`);
  }

  /**
   * Lets the kubelet run for a while, then adds the pod. If an ID is given, the container instance
   * with this ID has just started.
   */
  async begin(id?: string): Promise<void> {
    await this.clock.advance(this.#uptimeMs);
    if (id !== undefined) this.runs(id);
    this.manager.addPod(this.pod);
    await this.clock.advance(0);
  }

  /** Sets the running instance of the container. */
  runs(id: string, fields: Partial<ContainerStatus> & { readonly startedMsAgo?: number } = {}): void {
    const { startedMsAgo = 0, ...rest } = fields;
    const startedAt = new Date(this.clock.now() - startedMsAgo).toISOString();
    this.is(id, { state: { running: { startedAt } }, ...rest });
  }

  is(id: string, fields: Partial<ContainerStatus>, phase = 'Running'): void {
    const { initContainers = [] } = this.pod.spec;
    const status: ContainerStatus = {
      name: 'main',
      containerID: `containerd://${id}`,
      started: this.pod.spec.containers[0]?.startupProbe === undefined,
      ready: false,
      restartCount: 0,
      image: '',
      imageID: '',
      ...fields,
    };
    this.status = {
      phase,
      podIP: '10.0.0.7',
      ...(initContainers.length === 0
        ? { containerStatuses: [status] }
        : { initContainerStatuses: [{ ...status, name: 'side' }] }),
    };
  }

  result(type: 'liveness' | 'readiness' | 'startup', id: string): ProbeResult | undefined {
    return this.manager.results.get(type, id);
  }

  async pass(ms: number): Promise<void> {
    await this.clock.advance(ms);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.manager[Symbol.asyncDispose]();
  }

  /** Applies a probe result to the container status, as the kubelet does. */
  #changed(change: ProbeChange): void {
    this.changes.push(change);
    const flag = change.type === 'startup' ? 'started' : 'ready';
    const edit = (each: ContainerStatus) =>
      change.type !== 'liveness' && each.containerID === change.containerId
        ? { ...each, [flag]: change.result === 'success' }
        : each;
    this.status = {
      ...this.status,
      containerStatuses: this.status?.containerStatuses?.map(edit),
      initContainerStatuses: this.status?.initContainerStatuses?.map(edit),
    };
  }
}
