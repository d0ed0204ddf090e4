import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { apiResources } from '../src/api/index.ts';
import { createCriClient } from '../src/cri/index.ts';
import type { ClusterNode } from '../src/kubelet/cluster/index.ts';
import { Kubelet } from '../src/kubelet/index.ts';
import { type Logger, MetricRegistry, type Random, seededRandom } from '../src/lib/index.ts';
import type { StoredObject } from '../src/local-api/api/stored-object.ts';
import { memoryRuntimeFiles } from '../test/fakes/memory-runtime-files.ts';
import { MemoryManifestFiles } from '../test/fakes/memory-source-files.ts';
import { memorySubPaths } from '../test/fakes/runtime-stubs.ts';
import { scriptedProber } from '../test/fakes/scripted-prober.ts';
import { SimulatedCgroupHost } from '../test/fakes/simulated-cgroup-host.ts';
import { VirtualClock } from '../test/fakes/virtual-clock.ts';
import { clusterLife } from '../test/simulation/cluster/cluster-life.ts';
import { ClusterWorld } from '../test/simulation/cluster/cluster-world.ts';
import { settings } from '../test/simulation/kubelet-life.ts';
import { manifestDirectory, nodeName } from '../test/simulation/manifests.ts';
import {
  createSimulatedRuntime,
  memoryFiles,
  type SimulatedApi,
  type SimulatedRuntime,
} from '../test/simulator/index.ts';
import { copyingClient } from './copying-client.ts';
import { kubeletShare } from './kubelet-share.ts';

const image = 'localhost/app:1';
const namespace = 'default';
const { pods } = apiResources;
const restMs = 3_600_000;
/** The maximum time to wait for a condition, in virtual time. */
const patienceMs = 3_600_000;
const signal = new AbortController().signal;

const silent: Logger = { info() {}, warn() {}, error() {}, v: () => undefined, child: () => silent };

/** What an operation costs on the node: CPU time and pod syncs. */
export interface Cost {
  /** CPU time of the kubelet alone. */
  readonly cpuMs: number;
  /** CPU time including the simulated cluster and runtime. */
  readonly wholeMs: number;
  readonly syncs: number;
}

/** One run of the kubelet, from its start to its stop. */
interface Life {
  readonly metrics: MetricRegistry;
  readonly controller: AbortController;
  readonly cluster: ClusterNode;
  readonly transport: { close(): void };
  readonly running: Promise<void>;
}

/** A complete kubelet with a simulated runtime in a simulated cluster, under virtual time. */
export class SimulatedNode {
  readonly clock: VirtualClock;
  readonly #random: Random = seededRandom(1);
  readonly #runtime: SimulatedRuntime;
  readonly #cluster: ClusterWorld;
  readonly #files = memoryFiles();
  readonly #cgroups = new SimulatedCgroupHost({ mode: 'v2' });
  readonly #maxPods: number;
  #life: Life | undefined;
  #made = 0;

  constructor(maxPods: number) {
    this.#maxPods = maxPods;
    this.clock = new VirtualClock({ random: this.#random });
    this.#runtime = createSimulatedRuntime({
      clock: this.clock,
      random: this.#random,
      files: this.#files,
      flavour: 'containerd-2',
      script: () => ({ onTerm: 'die' }),
      images: [{ reference: image, command: ['app'] }],
      traceCapacity: 1,
    });
    const quiet = { note: () => {}, changed: () => {} };
    this.#cluster = new ClusterWorld({ clock: this.clock, random: this.#random, skewMs: 0, ...quiet });
  }

  get #api(): SimulatedApi {
    return this.#cluster.api;
  }

  async start(): Promise<void> {
    const { clock } = this;
    const random = this.#random;
    const transport = this.#runtime.transport();
    const cri = createCriClient({ transport, clock });
    const manifests = new MemoryManifestFiles();
    manifests.makeDirectory(manifestDirectory);
    const unreachable = () => Promise.reject(new Error('The simulated node has no network'));
    const machine = {
      manifests,
      files: memoryRuntimeFiles(this.#files),
      volumeParts: memorySubPaths((path) => this.#files.read(path)),
      cgroups: this.#cgroups,
      prober: scriptedProber({ clock }),
      httpGet: unreachable,
      dialHttp: unreachable,
      readFile: async () => 'nameserver 10.0.0.2\n',
    };
    const metrics = new MetricRegistry({ onError: () => {} });
    const deps = { clock, random, logger: silent, metrics, cri, machine };
    const cluster = clusterLife(this.#cluster, {
      ...deps,
      files: machine.files,
      maxPods: this.#maxPods,
      around: copyingClient,
    });
    const kubelet = await Kubelet.create(
      { ...settings, maxPods: this.#maxPods, apiPods: 'expected' },
      { ...deps, cluster: cluster.link, runtimeChecked: () => cluster.hint() },
      'containerd',
    );
    const controller = new AbortController();
    this.#life = { metrics, controller, cluster, transport, running: kubelet.run(controller.signal) };
    await this.until('the node is registered', () => this.#cluster.theNode() !== undefined);
    await clock.advance(60_000);
  }

  /** Creates pods in the API that are already bound to this node. */
  makePods(count: number): void {
    for (let left = count; left > 0; left--) this.#api.put(pods, aPod(`pod-${this.#made++}`));
  }

  /** Changes a label of a pod, as users and controllers do; its spec stays the same. */
  label(index: number, value: string): void {
    const name = `pod-${index}`;
    this.#api.change({ resource: pods, namespace, name }, (pod) => ({
      ...pod,
      metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, edited: value } },
    }));
  }

  deletePods(): void {
    for (const { metadata } of this.#api.objects(pods)) this.#api.deletePod(namespace, metadata.name);
  }

  /** Restarts the numbering of new pods at 0. */
  forgetPods(): void {
    this.#made = 0;
  }

  async becomeReady(count: number): Promise<void> {
    await this.until(
      `${count} pods are ready`,
      () => this.#api.objects(pods).filter(isReady).length === count,
    );
  }

  async becomeEmpty(): Promise<void> {
    await this.until('no pod is left', () => this.#api.objects(pods).length === 0);
  }

  /** Advances the virtual clock by whole seconds until the condition holds. */
  async until(what: string, isSo: () => boolean): Promise<void> {
    for (let passedMs = 0; !isSo(); passedMs += 1_000) {
      if (passedMs > patienceMs) throw new Error(`Timed out after a virtual hour waiting until ${what}`);
      await this.clock.advance(1_000);
    }
  }

  async cost(work: () => Promise<void>): Promise<Cost> {
    const [syncs, cpu] = [await this.#syncs(), process.cpuUsage()];
    const share = await kubeletShare(work);
    const { user, system } = process.cpuUsage(cpu);
    const wholeMs = (user + system) / 1_000;
    return { cpuMs: wholeMs * share, wholeMs, syncs: (await this.#syncs()) - syncs };
  }

  /** Stops the kubelet; its pods keep running. */
  async stop(): Promise<void> {
    const life = this.#life;
    if (life === undefined) return;
    life.controller.abort(new Error('The benchmark stopped the kubelet'));
    let isOver = false;
    const ending = life.running
      .then(() => life.cluster.end(1_000))
      .then(() => {
        isOver = true;
      });
    await this.until('the kubelet has ended', () => isOver);
    await ending;
    life.transport.close();
    this.#life = undefined;
    // Lets the remaining timers of the kubelet expire, so that its memory can be freed.
    await this.clock.advance(restMs);
  }

  close(): void {
    this.#api.close();
    this.#runtime.close();
  }

  /** The number of pod status patches that the API server has received. */
  get patches(): number {
    return this.#api.calls.of({ verb: 'patch', target: 'pods/status' });
  }

  async #syncs(): Promise<number> {
    const { metrics } = this.#life ?? {};
    if (metrics === undefined) return 0;
    const text = await metrics.expose(signal);
    const counts = text.matchAll(/^kubelet_pod_worker_duration_seconds_count\{.*\} (\d+)$/gm);
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
  }
}

/** The size of the live objects after a garbage collection. */
export function liveBytes(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

function aPod(name: string) {
  return {
    metadata: { name, namespace, uid: `uid-${name}`, labels: { app: 'bench' } },
    spec: {
      nodeName,
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      containers: [
        {
          name: 'main',
          image,
          imagePullPolicy: 'IfNotPresent',
          command: ['app'],
          terminationMessagePath: '/dev/termination-log',
          terminationMessagePolicy: 'File',
          resources: { requests: { cpu: '0', memory: '0' } },
        },
      ],
      volumes: [{ name: 'scratch', emptyDir: {} }],
    },
    status: { phase: 'Pending' },
  };
}

function isReady({ status = {} }: StoredObject): boolean {
  const conditions = (status['conditions'] ?? []) as readonly {
    readonly type: string;
    readonly status: string;
  }[];
  return conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True');
}
