import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type CriClient, createCriClient, wireTransport } from '../../src/cri/index.ts';
import type {
  Container,
  ContainerStatus,
  EphemeralContainer,
  PodSpec,
  PodStatus,
} from '../../src/kinds/index.ts';
import type { KubeletDeps, KubeletSettings } from '../../src/kubelet/index.ts';
import { realClock, systemRandom } from '../../src/lib/index.ts';
import { type Pod, podUid } from '../../src/pods/index.ts';
import { InProcessNode } from '../in-process-node.ts';
import { eventually } from '../kubeling-node.ts';
import type { PrivateRuntime, PrivateRuntimeOptions } from '../private-runtime.ts';
import { ProcessGate } from '../simulation/process-gate.ts';

const clock = realClock();

/** A script that exits immediately on SIGTERM. */
export const runsUntilSigterm = 'trap "exit 0" TERM; while true; do sleep 0.05; done';
/** A script that ignores SIGTERM, so the container must be killed. */
export const ignoresSigterm = 'trap "" TERM; while true; do sleep 0.05; done';

export type ContainerSketch = Partial<Container> & { readonly script?: string };

export interface PodSketch
  extends Partial<Omit<PodSpec, 'containers' | 'initContainers' | 'ephemeralContainers'>> {
  readonly containers: Readonly<Record<string, ContainerSketch>>;
  readonly init?: Readonly<Record<string, ContainerSketch>>;
}

type ContainerEnd = NonNullable<NonNullable<ContainerStatus['state']>['terminated']>;

export interface ApiNodeOptions extends Pick<PrivateRuntimeOptions, 'folder' | 'countsEverySeconds'> {
  readonly settings?: Partial<KubeletSettings>;
  /**
   * Replaces parts of the kubelet's access to the machine, such as the capacity it reads or the
   * shutdown signals it receives.
   */
  readonly machine?:
    | Partial<KubeletDeps['machine']>
    | ((runtime: PrivateRuntime) => Partial<KubeletDeps['machine']>);
  /** Replaces methods of the CRI client of each kubelet that is started on this node. */
  readonly criOverrides?: (cri: CriClient) => Partial<CriClient>;
}

/**
 * A kubelet in this process on a real containerd, fed with pods as the API server would send them.
 */
export class ApiNode implements AsyncDisposable {
  readonly #pods = new Map<string, Pod>();
  #node: InProcessNode | undefined;
  #gate: ProcessGate | undefined;
  #criOverrides: ApiNodeOptions['criOverrides'];
  /**
   * UIDs start with a prefix unique to this node, because a kubelet finds the mounts of a pod by
   * its UID.
   */
  readonly #uids = randomUUID().slice(0, -13);

  static async open({
    settings = {},
    machine = {},
    criOverrides,
    ...where
  }: ApiNodeOptions = {}): Promise<ApiNode> {
    const node = new ApiNode();
    node.#criOverrides = criOverrides;
    node.#node = await InProcessNode.open({
      ...where,
      settings: () => ({ apiPods: 'expected', ...settings }),
      aroundDeps: (deps, runtime) => {
        const own = typeof machine === 'function' ? machine(runtime) : machine;
        return node.#gated({ ...deps, machine: { ...deps.machine, ...own } }, runtime);
      },
    });
    node.#publish();
    return node;
  }

  get inner(): InProcessNode {
    assert.ok(this.#node, 'the API of the node is open');
    return this.#node;
  }

  /** Stops the kubelet like `kill -9`: work in flight is not completed. */
  crash(): void {
    this.#gate?.die();
  }

  /** Starts a new kubelet with the state on disk that the previous kubelet left. */
  async start(): Promise<void> {
    await this.inner.start();
    this.#publish();
  }

  add(name: string, sketch: PodSketch): void {
    this.#pods.set(name, this.#pod(name, sketch));
    this.#publish();
  }

  /** Edits the pod as a user does through the API. */
  change(name: string, change: (pod: Pod) => Pod): void {
    this.#pods.set(name, change(this.#desired(name)));
    this.#publish();
  }

  addEphemeral(name: string, ephemeral: EphemeralContainer & { readonly script: string }): void {
    const { script, ...fields } = ephemeral;
    const whole = { ...this.#container(fields.name, { script }), ...fields };
    this.change(name, (pod) => ({ ...pod, spec: { ...pod.spec, ephemeralContainers: [whole] } }));
  }

  delete(name: string, graceSeconds: number): void {
    this.change(name, (pod) => ({
      ...pod,
      metadata: {
        ...pod.metadata,
        deletionTimestamp: new Date().toISOString(),
        deletionGracePeriodSeconds: graceSeconds,
      },
    }));
  }

  status(name: string): PodStatus {
    const { uid } = this.#desired(name).metadata;
    return this.inner.kubelet.state.statuses.getPodStatus(uid) ?? {};
  }

  container(name: string, container = 'main'): ContainerStatus | undefined {
    const {
      containerStatuses = [],
      initContainerStatuses = [],
      ephemeralContainerStatuses = [],
    } = this.status(name);
    const all = [...containerStatuses, ...initContainerStatuses, ...ephemeralContainerStatuses];
    return all.find((status) => status.name === container);
  }

  async is(
    name: string,
    what: string,
    wanted: (status: PodStatus) => boolean,
    limitMs = 120_000,
  ): Promise<PodStatus> {
    return await this.until(
      `${name} to be ${what}`,
      name,
      () => {
        const status = this.status(name);
        return wanted(status) ? status : undefined;
      },
      limitMs,
    );
  }

  async until<T>(
    what: string,
    name: string,
    look: () => Promise<T | undefined> | T | undefined,
    limitMs = 120_000,
  ): Promise<T> {
    return await eventually(
      what,
      async () => look(),
      limitMs,
      () => this.describe(name),
    );
  }

  running(name: string, container = 'main'): Promise<ContainerStatus> {
    return this.until(`${container} of ${name} to run`, name, () => {
      const status = this.container(name, container);
      return status?.state?.running === undefined ? undefined : status;
    });
  }

  /**
   * Waits until the container has exited, even if it is restarted; returns its termination state.
   */
  exited(name: string, container = 'main', restarts = 0): Promise<ContainerEnd> {
    return this.until(`${container} of ${name} to exit`, name, () => {
      const status = this.container(name, container);
      if (status === undefined || status.restartCount < restarts) return undefined;
      return status.state?.terminated ?? status.lastState?.terminated;
    });
  }

  /** Waits until the pod was deleted and all its containers have exited. */
  async terminated(name: string): Promise<void> {
    const { uid } = this.#desired(name).metadata;
    await this.until(`${name} to be deleted`, name, () =>
      this.inner.kubelet.control.workers.queries.isPodKnownTerminated(uid) ? true : undefined,
    );
  }

  /** Returns the recorded events of the pod, each as its reason and message. */
  events(name: string): readonly string[] {
    const { uid } = this.#desired(name).metadata;
    const stories = this.inner.kubelet.state.flights.all().filter((story) => story.uid === uid);
    return stories.flatMap(({ entries }) =>
      entries.flatMap((entry) => ('reason' in entry ? [`${entry.reason}: ${entry.message}`] : [])),
    );
  }

  /**
   * Reads the lines of a file that the pod's containers write into /shared, which outlives them.
   */
  async lines(name: string, file = 'told'): Promise<readonly string[]> {
    const text = await readFile(this.inner.path('shared', name, file), 'utf8').catch(() => '');
    return text.split('\n').filter((line) => line !== '');
  }

  describe(name: string): string {
    return [JSON.stringify(this.status(name), undefined, 1), ...this.events(name)].join('\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#node?.[Symbol.asyncDispose]();
  }

  #publish(): void {
    this.inner.kubelet.state.config.set('api', [...this.#pods.values()]);
  }

  #desired(name: string): Pod {
    const pod = this.#pods.get(name);
    assert.ok(pod, `there is a pod ${name}`);
    return pod;
  }

  /**
   * Wraps the dependencies of a kubelet so that all of its access to the machine can be stopped.
   */
  #gated(deps: KubeletDeps, { containerd: { layout } }: PrivateRuntime): KubeletDeps {
    const transport = wireTransport({ endpoint: `unix://${layout.socket}`, clock, random: systemRandom() });
    const { manifests, files, cgroups, stats } = deps.machine;
    const gate = new ProcessGate(() => {
      transport.close();
      // The worker thread of the disk walk keeps the process alive until the thread is terminated.
      stats?.directories[Symbol.dispose]?.();
    });
    this.#gate = gate;
    const own = gate.clock(deps.clock);
    const cri = createCriClient({ transport, clock: own });
    return {
      ...deps,
      clock: own,
      cri: gate.around({ ...cri, ...this.#criOverrides?.(cri) }),
      machine: {
        ...deps.machine,
        manifests: gate.around(manifests),
        files: gate.around(files),
        cgroups: gate.around(cgroups),
        ...(stats && { stats: { ...stats, directories: gate.around(stats.directories) } }),
      },
    };
  }

  #pod(name: string, { containers, init = {}, ...spec }: PodSketch): Pod {
    const all = (sketches: Readonly<Record<string, ContainerSketch>>) =>
      Object.entries(sketches).map(([container, sketch]) => this.#container(container, sketch));
    const initContainers = all(init);
    return {
      metadata: {
        name,
        namespace: 'default',
        uid: podUid(`${this.#uids}-${String(this.#pods.size + 1).padStart(12, '0')}`),
      },
      spec: {
        restartPolicy: 'Always',
        terminationGracePeriodSeconds: 5,
        enableServiceLinks: false,
        securityContext: {},
        dnsPolicy: 'Default',
        volumes: [
          { name: 'shared', hostPath: { path: this.inner.path('shared', name), type: 'DirectoryOrCreate' } },
        ],
        ...spec,
        ...(initContainers.length > 0 && { initContainers }),
        containers: all(containers),
      },
      status: {},
    };
  }

  #container(name: string, { script = runsUntilSigterm, ...fields }: ContainerSketch): Container {
    return {
      name,
      image: this.inner.runtime.image,
      imagePullPolicy: 'IfNotPresent',
      command: ['sh', '-c', script],
      terminationMessagePath: '/dev/termination-log',
      terminationMessagePolicy: 'File',
      volumeMounts: [{ name: 'shared', mountPath: '/shared' }],
      ...fields,
    };
  }
}
