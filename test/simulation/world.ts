import type { NodeMachine } from '../../src/kubelet/index.ts';
import { collectLogs, type Logger, type Random, seededRandom } from '../../src/lib/index.ts';
import type { StoreChange } from '../../src/local-api/storage/versioned-store.ts';
import { memoryRuntimeFiles } from '../fakes/memory-runtime-files.ts';
import { MemoryManifestFiles } from '../fakes/memory-source-files.ts';
import { memorySubPaths } from '../fakes/runtime-stubs.ts';
import { SimulatedCgroupHost } from '../fakes/simulated-cgroup-host.ts';
import { VirtualClock } from '../fakes/virtual-clock.ts';
import {
  createSimulatedRuntime,
  type FaultPlan,
  type Flavour,
  type MemoryFiles,
  memoryFiles,
  type RestartOptions,
  registryOf,
  type SimulatedRuntime,
  type TraceEntry,
} from '../simulator/index.ts';
import { ClusterWorld, type ClusterWorldOptions } from './cluster/cluster-world.ts';
import { DeviceWorld } from './devices/device-world.ts';
import { ScarceDisk } from './disk/scarce-disk.ts';
import { KubeletLife, type LifeOptions, type Mutation } from './kubelet-life.ts';
import { manifestDirectory, manifestPath, manifestText } from './manifests.ts';
import { PodApi } from './pod-api.ts';
import { PodNetwork, type ProbeWitness } from './pod-network.ts';
import { evictionSettings, PressureWorld } from './pressure/pressure-world.ts';
import { scriptOf } from './programs.ts';
import { images, type PodSketch } from './sketch.ts';
import { VolumeWorld, type VolumeWorldOptions } from './volumes/volume-world.ts';

export interface WorldOptions {
  readonly seed: number;
  readonly flavour?: Flavour;
  readonly mutate?: Mutation | undefined;
  /** Whether the kubelet's log is stored, which slows the simulation down. */
  readonly logs?: 'kept' | 'dropped';
  readonly settings?: LifeOptions['settings'];
  readonly aroundCri?: LifeOptions['aroundCri'];
  readonly probes?: LifeOptions['probes'];
  /** Wraps the simulated machine of the node, for example to fail some of its operations. */
  readonly aroundMachine?: (machine: NodeMachine) => NodeMachine;
  /** The cluster the node belongs to; by default the node is standalone. */
  readonly cluster?: Pick<ClusterWorldOptions, 'random' | 'skewMs' | 'copies'> | undefined;
  /**
   * Gives pods all volume types; otherwise volume files are not stored and no CSI driver exists.
   */
  readonly volumes?: Pick<VolumeWorldOptions, 'random'> | undefined;
  /**
   * Makes the disk often full and containers write many log lines; by default there is enough
   * space.
   */
  readonly scarceDisk?: { readonly random: Random } | undefined;
  /** Adds a device plugin; by default no plugin exists. */
  readonly devices?: { readonly random: Random } | undefined;
  /** Whether the node is sometimes under resource pressure; by default it never is. */
  readonly pressure?: 'some' | undefined;
}

/**
 * The observer of the simulation. Its methods are called synchronously, before the simulation
 * continues.
 */
export interface Witness extends Partial<ProbeWitness> {
  entry(entry: TraceEntry): void;
  calling(method: string, request: unknown): void;
  answered?: LifeOptions['answered'];
  kubeletStarted(life: KubeletLife): void;
  kubeletGone(): void;
  kubeletEnded(error: unknown): void;
  bug(method: string, error: unknown): void;
  apiChanged?(change: StoreChange): void;
  volumeChanging?(method: string, path: string): void;
  /** Called when another component of the simulated machine detects a violated rule. */
  broken?(rule: string, what: string): void;
}

/**
 * One simulated node under virtual time: the runtime and the machine persist while kubelets are
 * restarted.
 */
export class World {
  readonly clock: VirtualClock;
  readonly runtime: SimulatedRuntime;
  readonly manifests = new MemoryManifestFiles();
  readonly files: MemoryFiles = memoryFiles();
  readonly cgroups = new SimulatedCgroupHost({ mode: 'v2' });
  readonly machine: NodeMachine;
  /** The API server of a standalone node. */
  readonly api = new PodApi();
  readonly cluster: ClusterWorld | undefined;
  readonly volumes: VolumeWorld | undefined;
  readonly scarceDisk: ScarceDisk | undefined;
  readonly devices: DeviceWorld | undefined;
  readonly pressure: PressureWorld | undefined;
  readonly network: PodNetwork;
  /** The complete history, one line per entry. */
  readonly history: string[] = [];
  readonly logs;
  readonly #random: Random;
  readonly #options: WorldOptions;
  readonly #witness: Witness;
  #life: KubeletLife | undefined;

  constructor(options: WorldOptions, witness: Witness) {
    this.#options = options;
    this.#witness = witness;
    this.#random = seededRandom(options.seed);
    this.clock = new VirtualClock({ random: this.#random });
    this.scarceDisk = options.scarceDisk && new ScarceDisk(options.scarceDisk.random, this.files);
    this.logs = options.logs === 'kept' ? collectLogs(this.clock) : undefined;
    this.runtime = createSimulatedRuntime({
      clock: this.clock,
      random: this.#random,
      files: this.files,
      flavour: options.flavour ?? 'containerd-1.6',
      script: (_sandbox, config) =>
        options.scarceDisk === undefined ? scriptOf(config) : ScarceDisk.talking(scriptOf(config)),
      // The image is pinned, because no simulated registry has it: once removed it could not be
      // pulled again.
      images: [{ reference: images.present, command: ['app'], pinned: options.scarceDisk !== undefined }],
      registry: registryOf([
        { reference: images.pulled, command: ['app'], pullMs: 2_000 },
        { reference: images.slow, command: ['app'], pullMs: 15_000 },
        {
          reference: images.flaky,
          command: ['app'],
          failure: { code: 'UNKNOWN', message: 'the registry is busy', times: 2 },
        },
      ]),
      traceCapacity: 1,
      onBug: (method, error) => witness.bug(method, error),
    });
    this.runtime.trace.subscribe((entry) => {
      this.note(describeEntry(entry));
      witness.entry(entry);
    });
    this.network = new PodNetwork(this.runtime, witness);
    this.manifests.makeDirectory(manifestDirectory);
    const files = memoryRuntimeFiles(this.files);
    this.volumes = options.volumes && this.#makeVolumes(options.volumes.random, files);
    this.devices = options.devices && new DeviceWorld(this.clock, options.devices.random);
    const pressure = options.pressure && new PressureWorld(this.clock, this.runtime);
    this.pressure = pressure;
    const { aroundMachine = (machine: NodeMachine) => machine } = options;
    this.machine = aroundMachine({
      manifests: this.manifests,
      files: this.volumes?.files ?? files,
      volumeFiles: this.volumes?.volumeFiles,
      networkMounts: this.volumes?.networkMounts,
      disks: this.volumes?.disks,
      blockDevices: this.volumes?.blockDevices,
      plugins: this.volumes?.plugins,
      devices: this.devices?.host,
      volumeParts: memorySubPaths((path) => this.files.read(path)),
      ...this.scarceDisk?.machine,
      cgroups: this.cgroups,
      evictionStats: pressure,
      httpGet: () => Promise.reject(new Error('The simulated machine has no network')),
      dialHttp: () => Promise.reject(new Error('The simulated machine has no network')),
      readFile: async (path) =>
        (path === '/proc/self/mountinfo' && this.volumes?.mountinfo()) || 'nameserver 10.0.0.2\n',
    });
    this.cluster =
      options.cluster &&
      new ClusterWorld({
        ...options.cluster,
        volumes: this.volumes,
        clock: this.clock,
        note: (what) => this.note(what),
        changed: (change) => witness.apiChanged?.(change),
      });
  }

  get life(): KubeletLife | undefined {
    return this.#life?.alive === true ? this.#life : undefined;
  }

  note(what: string): void {
    const seconds = (this.clock.monotonicMs() / 1_000).toFixed(4).padStart(9);
    this.history.push(`${seconds}  ${what}`);
  }

  async startKubelet(): Promise<void> {
    if (this.life !== undefined) return;
    this.note('kubelet: started');
    this.volumes?.kubeletStarted();
    this.#life = await KubeletLife.begin({
      clock: this.clock,
      random: this.#random,
      logger: this.logs?.logger ?? silent,
      runtime: this.runtime,
      machine: this.machine,
      mutate: this.#options.mutate,
      cluster: this.cluster,
      settings: {
        apiPods: this.cluster ? 'expected' : this.api.state,
        ...this.scarceDisk?.settings,
        eviction: this.pressure && evictionSettings,
        ...this.#options.settings,
      },
      beside: (...given) => this.scarceDisk?.reclaim(...given) ?? Promise.resolve(),
      aroundCri: this.#options.aroundCri,
      probes: this.#options.probes ?? ((question) => this.network.answer(question)),
      calling: (method, request) => this.#calling(method, request),
      answered: (request, response) => this.#witness.answered?.(request, response),
      died: () => {
        this.note('kubelet: gone');
        this.#witness.kubeletGone();
      },
      ended: (error) => this.#witness.kubeletEnded(error),
    });
    this.#witness.kubeletStarted(this.#life);
    this.api.serve(this.#life.kubelet);
  }

  killKubelet(): void {
    this.life?.kill();
  }

  /**
   * Advances the time until the kubelet has stopped; returns a description of the timers and
   * watches it left.
   */
  async stopKubelet(): Promise<string | undefined> {
    const { life } = this;
    if (life === undefined) return undefined;
    let left: number | undefined;
    void life.stop().then((count) => {
      left = count;
    });
    for (let passedMs = 0; left === undefined && passedMs < stopMs; passedMs += 1_000)
      await this.clock.advance(1_000);
    if (left === undefined) return 'it does not stop';
    return left === 0 ? undefined : `${left} timers or watches are left`;
  }

  write(sketch: PodSketch): void {
    this.network.meet(sketch);
    if (sketch.source === 'api') this.api.write(sketch, this.life?.kubelet);
    else this.manifests.replace(manifestPath(sketch.name), manifestText(sketch));
    this.note(`manifest ${sketch.name}: revision ${sketch.revision} written`);
  }

  writeBroken(name: string): void {
    this.manifests.write(manifestPath(name), `{"kind": "Pod", "metadata": {"name": "${name}"`);
    this.note(`manifest ${name}: broken`);
  }

  remove(name: string): void {
    if (this.api.has(name)) this.api.remove(name, this.life?.kubelet);
    else this.manifests.remove(manifestPath(name));
    this.note(`manifest ${name}: removed`);
  }

  setFaults(faults: FaultPlan | undefined, what: string): void {
    this.note(`faults: ${what}`);
    this.runtime.setFaults(faults);
  }

  restartRuntime(options: RestartOptions): void {
    this.runtime.restart(options);
  }

  #makeVolumes(random: Random, files: NodeMachine['files']): VolumeWorld {
    return new VolumeWorld({
      clock: this.clock,
      random,
      files,
      witness: {
        volumeChanging: (method, path) => this.#witness.volumeChanging?.(method, path),
        broken: (rule, what) => this.#witness.broken?.(rule, what),
        calling: (method, request) => this.#calling(method, request),
        note: (what) => this.note(what),
      },
    });
  }

  #calling(method: string, request: unknown): void {
    if (isTold(method)) this.note(`call ${method} ${describeRequest(request)}`);
    this.#witness.calling(method, request);
  }
}

const stopMs = 60_000;

const silent: Logger = {
  info() {},
  warn() {},
  error() {},
  v: () => undefined,
  child: () => silent,
};

function isTold(method: string): boolean {
  return /^(run|create|start|stop|remove|pull|reopen)/.test(method);
}

interface AnyRequest {
  readonly containerId?: string;
  readonly podSandboxId?: string;
  readonly timeout?: bigint;
  readonly config?: { readonly metadata?: { readonly name?: string; readonly attempt?: number } };
  readonly image?: { readonly image?: string };
}

function describeRequest(request: unknown): string {
  const { containerId, podSandboxId, timeout, config, image } = (request ?? {}) as AnyRequest;
  const parts = [
    containerId?.slice(0, 8),
    podSandboxId === undefined ? undefined : `sandbox ${podSandboxId.slice(0, 8)}`,
    timeout === undefined ? undefined : `within ${timeout} s`,
    config?.metadata === undefined ? undefined : `${config.metadata.name} #${config.metadata.attempt}`,
    image?.image,
  ];
  return parts.filter((part) => part !== undefined).join(' ');
}

function describeEntry(entry: TraceEntry): string {
  const { kind, at: _at, ...rest } = entry;
  const words = Object.entries(rest).flatMap(([key, value]) => {
    if (key === 'podNamespace') return [];
    return key === 'podUid' || key === 'id' || key === 'sandboxId'
      ? [`${key}=${String(value).slice(0, 8)}`]
      : [`${key}=${String(value)}`];
  });
  return `    ${kind} ${words.join(' ')}`;
}
