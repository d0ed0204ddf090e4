import type { ApiClient } from '../../src/api/index.ts';
import {
  type CriClient,
  type CriTransport,
  createCriClient,
  type ExecSyncRequest,
  type ExecSyncResponse,
} from '../../src/cri/index.ts';
import type { ClusterNode } from '../../src/kubelet/cluster/index.ts';
import { Kubelet, type KubeletSettings, type NodeMachine } from '../../src/kubelet/index.ts';
import { type Clock, type Logger, MetricRegistry, type Random } from '../../src/lib/index.ts';
import type { PluginHost } from '../../src/plugins/index.ts';
import type { DeviceHost } from '../../src/resources/index.ts';
import { type ScriptedProberOptions, scriptedProber } from '../fakes/scripted-prober.ts';
import { settle } from '../fakes/virtual-clock.ts';
import type { SimulatedRuntime } from '../simulator/index.ts';
import { clusterLife } from './cluster/cluster-life.ts';
import type { ClusterWorld } from './cluster/cluster-world.ts';
import { manifestDirectory, nodeName } from './manifests.ts';
import { ProcessGate } from './process-gate.ts';

/** A bug that is injected into the kubelet to show that the simulation finds it. */
export interface Mutation {
  /** Modifies the kubelet before it starts. */
  readonly kubelet?: (kubelet: Kubelet) => void;
  /** Modifies calls to the runtime, or their results. */
  readonly cri?: (client: CriClient) => CriClient;
  /** Modifies operations on the machine, or their results. */
  readonly machine?: (machine: NodeMachine) => NodeMachine;
  /** Modifies requests to the API, or their responses. */
  readonly api?: (client: ApiClient, kubelet: () => Kubelet | undefined) => ApiClient;
}

export interface LifeOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly runtime: SimulatedRuntime;
  readonly machine: NodeMachine;
  /** The cluster the node belongs to; undefined for a standalone node. */
  readonly cluster?: ClusterWorld | undefined;
  readonly mutate?: Mutation | undefined;
  /** The responses of containers to network probes; by default all succeed. */
  readonly probes?: ScriptedProberOptions['script'];
  /** Settings that replace the defaults of all seeds. */
  readonly settings?: Partial<KubeletSettings> | undefined;
  /** Wraps the runtime client of the kubelet. */
  readonly aroundCri?: ((client: CriClient) => CriClient) | undefined;
  /** Called before each runtime call is sent. */
  readonly calling: (method: string, request: unknown) => void;
  /** Called with each result of a command executed in a container. */
  readonly answered: (request: ExecSyncRequest, answer: ExecSyncResponse | undefined) => void;
  /** Runs concurrently with the kubelet in its process and is aborted with it. */
  readonly beside?: ((kubelet: Kubelet, clock: Clock, signal: AbortSignal) => Promise<void>) | undefined;
  readonly died: () => void;
  /** Called when the kubelet exits without being stopped, which is always a bug. */
  readonly ended: (error: unknown) => void;
}

/** The feature gates that are on by default and affect the validation of manifests. */
const enabledGates: ReadonlySet<string> = new Set([
  'ContainerRestartRules',
  'RestartAllContainersOnContainerExits',
]);

export const settings: KubeletSettings = {
  nodeName,
  nodeIps: ['10.0.0.1'],
  rootDir: '/var/lib/kubelet',
  podLogsDir: '/var/log/pods',
  logLinksDir: '/var/log/containers',
  staticPodPath: manifestDirectory,
  staticPodUrl: '',
  staticPodUrlHeader: {},
  fileCheckMs: 20_000,
  httpCheckMs: 20_000,
  syncFrequencyMs: 60_000,
  cgroupRoot: '/',
  cgroupDriver: 'cgroupfs',
  cgroupsPerQos: true,
  capacity: { milliCpu: 4_000, memoryBytes: 8 * 2 ** 30 },
  reserved: { milliCpu: 0, memoryBytes: 0 },
  node: {
    cgroups: 'v2',
    memoryCapacity: 8n << 30n,
    swapCapacity: 0n,
    swapController: 'absent',
    swapBehavior: 'NoSwap',
    hugePageSizes: [],
    cpuQuota: 'enforced',
    cpuPeriodUs: 100_000n,
    oomKills: 'container',
  },
  podPidsLimit: -1,
  clusterDns: ['10.0.0.10'],
  clusterDomain: 'cluster.local',
  resolvConf: '/etc/resolv.conf',
  seccompFallback: 'Unconfined',
  maxPods: 110,
  maxRestartWaitMs: 60_000,
  images: { verification: { kind: 'NeverVerifyPreloadedImages' }, plugins: undefined },
  pulls: { maxParallel: 1, qps: 5, burst: 10 },
  gc: { minAgeMs: 0, maxPerContainer: 1, maxContainers: -1 },
  isGateEnabled: (gate) => enabledGates.has(gate),
};

/** How long an exiting kubelet may deliver pending events. */
const lastWordsMs = 1_000;

/** One kubelet process from its start until it is stopped or killed. */
export class KubeletLife {
  readonly kubelet: Kubelet;
  readonly metrics: MetricRegistry;
  readonly #gate: ProcessGate;
  readonly #transport: CriTransport;
  readonly #cluster: ClusterNode | undefined;
  readonly #controller = new AbortController();
  #running: Promise<void> | undefined;

  static async begin(options: LifeOptions): Promise<KubeletLife> {
    const transport = options.runtime.transport();
    const gate = new ProcessGate(() => {
      transport.close();
      options.died();
    });
    const clock = gate.clock(options.clock);
    const { aroundCri = (client: CriClient) => client, mutate = {} } = options;
    const { cri: mutateCri = (client: CriClient) => client } = mutate;
    const client = observed(createCriClient({ transport, clock }), options);
    const cri = gate.around(mutateCri(aroundCri(client)));
    const own = mutate.machine?.(options.machine) ?? options.machine;
    const prober = options.machine.prober ?? scriptedProber({ clock, script: options.probes });
    const machine = gatedMachine(gate, { ...own, prober });
    const deps = {
      clock,
      random: options.random,
      logger: options.logger,
      metrics: new MetricRegistry({ onError: () => {} }),
      cri,
      machine,
    };
    let created: Kubelet | undefined;
    const { api: mutateApi = (client: ApiClient) => client } = mutate;
    const around = (client: ApiClient) =>
      gate.around(
        told(
          mutateApi(client, () => created),
          (verb, what) => options.calling(`api ${verb}`, what),
        ),
      );
    const cluster =
      options.cluster && clusterLife(options.cluster, { ...deps, files: machine.files, around });
    const kubelet = await Kubelet.create(
      { ...settings, ...options.settings },
      { ...deps, cluster: cluster?.link, runtimeChecked: () => cluster?.hint() },
      'containerd',
    );
    created = kubelet;
    mutate.kubelet?.(kubelet);
    const life = new KubeletLife(kubelet, deps.metrics, { gate, transport }, cluster);
    life.#run(options.ended, (signal) => options.beside?.(kubelet, clock, signal));
    return life;
  }

  private constructor(
    kubelet: Kubelet,
    metrics: MetricRegistry,
    { gate, transport }: { readonly gate: ProcessGate; readonly transport: CriTransport },
    cluster: ClusterNode | undefined,
  ) {
    this.kubelet = kubelet;
    this.metrics = metrics;
    this.#transport = transport;
    this.#gate = gate;
    this.#cluster = cluster;
  }

  get alive(): boolean {
    return this.#gate.alive;
  }

  /** Kills the process as SIGKILL does. */
  kill(): void {
    this.#gate.die();
  }

  /** Kills the process after the given number of its calls and responses. */
  killSoon(crossings: number): void {
    this.#gate.dieAfter(crossings);
  }

  /**
   * Stops the process as SIGTERM does; resolves after the shutdown with the number of timers and
   * watches that are left.
   */
  async stop(): Promise<number> {
    this.#controller.abort(new Error('The kubelet was stopped'));
    await this.#running;
    await this.#cluster?.end(lastWordsMs);
    this.#transport.close();
    // Calls aborted together end one after another at the same virtual time.
    await settle();
    const left = this.#gate.held;
    this.#gate.die();
    return left;
  }

  #run(ended: (error: unknown) => void, beside: (signal: AbortSignal) => Promise<void> | undefined): void {
    const { signal } = this.#controller;
    this.#running = Promise.all([this.kubelet.run(signal), beside(signal)]).then(
      () => (signal.aborted ? undefined : ended(undefined)),
      (error) => (signal.aborted ? undefined : ended(error)),
    );
  }
}

/**
 * The machine as the simulated process accesses it: calls do not return after the process is
 * killed.
 */
function gatedMachine(gate: ProcessGate, machine: NodeMachine): NodeMachine {
  const around = <T extends object>(part: T | undefined) => part && gate.around(part);
  const { httpGet, dialHttp, readFile, plugins, devices } = machine;
  return {
    manifests: gate.around(machine.manifests),
    files: gate.around(machine.files),
    volumeParts: gate.around(machine.volumeParts),
    volumeFiles: around(machine.volumeFiles),
    networkMounts: around(machine.networkMounts),
    disks: around(machine.disks),
    blockDevices: around(machine.blockDevices),
    plugins: plugins && gatedPlugins(gate, plugins),
    logFiles: around(machine.logFiles),
    diskSpace: machine.diskSpace,
    devices: devices && gatedDevices(gate, devices),
    cgroups: gate.around(machine.cgroups),
    facts: machine.facts,
    evictionStats: around(machine.evictionStats),
    prober: around(machine.prober),
    httpGet,
    dialHttp,
    readFile,
  };
}

/**
 * The plugins as the simulated process accesses them, including data sent over existing
 * connections.
 */
function gatedPlugins(gate: ProcessGate, plugins: PluginHost): PluginHost {
  const { prepare, sockets, watch } = gate.around(plugins);
  const open: PluginHost['open'] = (socket) => {
    const channel = plugins.open(socket);
    return {
      client: (service) => gate.around(channel.client(service) as object) as never,
      close: () => channel.close(),
    };
  };
  return { prepare, sockets, watch, open };
}

function gatedDevices(gate: ProcessGate, devices: DeviceHost): DeviceHost {
  const { clear, serve, identity } = gate.around(devices);
  const open: DeviceHost['open'] = (socket) => {
    const channel = devices.open(socket);
    return { client: () => gate.around(channel.client({} as never) as object) as never, close: () => {} };
  };
  return { clear, serve, identity, open };
}

function told(client: ApiClient, calling: (verb: string, what: unknown) => void): ApiClient {
  return new Proxy(client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: readonly unknown[]) => {
        calling(String(name), args[0]);
        return Reflect.apply(value, target, args) as unknown;
      };
    },
  });
}

function observed(client: CriClient, { calling, answered }: LifeOptions): CriClient {
  return new Proxy(client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: readonly unknown[]) => {
        calling(String(name), args[0]);
        const response = Reflect.apply(value, target, args) as unknown;
        if (name === 'execSync') tell(response as Promise<ExecSyncResponse>, args[0] as ExecSyncRequest);
        return response;
      };
    },
  });

  function tell(answer: Promise<ExecSyncResponse>, request: ExecSyncRequest): void {
    answer.then(
      (response) => answered(request, response),
      () => answered(request, undefined),
    );
  }
}
