import { posix } from 'node:path';
import type { CriClient } from '../cri/index.ts';
import {
  Backoff,
  type CgroupHost,
  type Clock,
  detectCgroupLayout,
  type Logger,
  type MetricRegistry,
  type Random,
  randomHex,
  WorkQueue,
} from '../lib/index.ts';
import { Pleg, plegMetrics, proofContainerId, RunningPods, runtimeEvents } from '../pleg/index.ts';
import { isTerminalPhase, type Pod, PodManager, type PodUid, readResources } from '../pods/index.ts';
import {
  CgroupManager,
  kubepodsValues,
  PodContainerManager,
  parseCgroupPath,
  QosContainerManager,
} from '../resources/index.ts';
import {
  CrashBackoff,
  decideSandbox,
  NodePlanner,
  noCredentials,
  noHooks,
  PodRuntime,
  type RuntimeFiles,
} from '../runtime/index.ts';
import {
  describeProblem,
  FileSource,
  type HttpGet,
  HttpSource,
  type ManifestFiles,
  PodConfig,
  type SourceProblem,
} from '../sources/index.ts';
import { StatusManager } from '../status/index.ts';
import { PodWorkers, workerMetrics } from '../workers/index.ts';
import { FlightRecorder } from './flight-recorder.ts';
import { GarbageCollector } from './garbage-collector.ts';
import { PlainVolumes } from './plain-volumes.ts';
import { PodCleanups } from './pod-cleanups.ts';
import { PodDirectories } from './pod-files.ts';
import { PodHandlers } from './pod-handlers.ts';
import { isPastDeadline, KubeletPodSyncer } from './pod-syncer.ts';
import { RuntimeState, watchRuntime } from './runtime-state.ts';
import type { KubeletSettings } from './settings.ts';
import { SyncLoop } from './sync-loop.ts';
import { ticker } from './ticker.ts';

/** The machine as the kubelet reaches it besides the runtime; simulated as a whole in tests. */
export interface NodeMachine {
  readonly manifests: ManifestFiles;
  readonly httpGet: HttpGet;
  readonly files: RuntimeFiles;
  readonly cgroups: CgroupHost;
  readFile(path: string): Promise<string>;
}

export interface KubeletDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
  readonly cri: CriClient;
  readonly machine: NodeMachine;
  /** Told each time the runtime was asked how it is: what went wrong, or undefined. */
  readonly runtimeLooked?: (error: unknown) => void;
}

const syncTickMs = 1_000;
const housekeepingMs = 2_000;
const loopPause = { baseMs: 100, maxMs: 5_000 };

/** One node's kubelet: all rooms, wired. Nothing runs before `run`. */
export class Kubelet {
  readonly flights: FlightRecorder;
  readonly config: PodConfig;
  readonly pods = new PodManager();
  readonly statuses: StatusManager;
  readonly workers: PodWorkers;
  readonly pleg: Pleg;
  readonly loop: SyncLoop;
  readonly runtimeState: RuntimeState;
  readonly running: RunningPods;
  readonly #settings: KubeletSettings;
  readonly #deps: KubeletDeps;
  readonly #runtime: PodRuntime;
  readonly #qos: QosContainerManager;
  readonly #garbage: GarbageCollector;
  readonly #sources: readonly (FileSource | HttpSource)[];

  static async create(settings: KubeletSettings, deps: KubeletDeps, runtimeName: string): Promise<Kubelet> {
    const layout = await detectCgroupLayout(deps.machine.cgroups);
    const { clock } = deps;
    const cgroups = new CgroupManager({
      host: deps.machine.cgroups,
      layout,
      driver: settings.cgroupDriver,
      clock,
    });
    return new Kubelet(settings, deps, cgroups, runtimeName);
  }

  private constructor(
    settings: KubeletSettings,
    deps: KubeletDeps,
    cgroups: CgroupManager,
    runtimeName: string,
  ) {
    const { clock, random, logger } = deps;
    const journal = new FlightRecorder({ clock, nodeName: settings.nodeName });
    this.#settings = settings;
    this.#deps = deps;
    this.flights = journal;
    this.runtimeState = new RuntimeState(clock);
    this.statuses = new StatusManager({ clock, logger, findPod: (uid) => this.#findPod(uid) });
    this.config = new PodConfig({ sources: sourceNames(settings), clock, logger, journal });
    this.#sources = this.#makeSources();
    this.#qos = this.#makeQos(cgroups);
    const podCgroups = this.#makePodCgroups(cgroups);
    const directories = new PodDirectories(settings.rootDir, deps.machine.files);
    const volumes = new PlainVolumes(directories, deps.machine.files);
    const crashBackoff = new CrashBackoff({ random, maxMs: settings.maxRestartWaitMs });
    this.#runtime = this.#makeRuntime(podCgroups, directories, volumes, crashBackoff, runtimeName);
    this.running = new RunningPods(clock, this.#runtime);
    this.#garbage = new GarbageCollector({
      clock,
      logger,
      collect: (signal) => this.#runtime.garbageCollect('gone-pods', signal),
    });
    this.pleg = new Pleg({
      clock,
      random,
      log: logger,
      runtime: this.#runtime,
      events: runtimeEvents(deps.cri, (signal) =>
        deps.cri.publishContainerdEvent(proofContainerId(randomHex(random, 8)), signal),
      ),
      metrics: plegMetrics(deps.metrics),
    });
    const queue = new WorkQueue<PodUid>(clock);
    this.workers = this.#makeWorkers(podCgroups, directories, volumes, queue);
    const cleanups = this.#makeCleanups(podCgroups, directories, crashBackoff);
    this.loop = this.#makeLoop(queue, cleanups);
  }

  /** Runs until the signal ends it; pods run on. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, cri, runtimeLooked: looked = () => {} } = this.#deps;
    try {
      await this.#qos.start(signal);
    } catch (error) {
      // Told to end before it began: an end like any other.
      if (signal.aborted) return;
      throw error;
    }
    const background = [
      watchRuntime({ cri, clock, state: this.runtimeState, looked }, signal),
      this.pleg.run(signal),
      this.#qos.run(signal),
      this.#garbage.run(signal),
      ...this.#sources.map((source) => source.run(signal)),
    ];
    try {
      await this.loop.run(signal);
    } finally {
      await this.workers[Symbol.asyncDispose]();
      await Promise.allSettled(background);
      await this.#runtime[Symbol.asyncDispose]();
    }
  }

  /** Why pods cannot be worked on now. */
  problems(): readonly string[] {
    const pleg = this.pleg.problem();
    return [...this.runtimeState.problems().runtime, ...(pleg === undefined ? [] : [pleg])];
  }

  /** What the rooms remember of pods: all zero on an empty node with nothing under way. */
  held(): Readonly<Record<string, number>> {
    const { workers, pleg, statuses, pods } = this;
    return {
      ...named('workers', workers.remembered),
      ...named('pleg', pleg.remembered),
      ...named('runtime', this.#runtime.held()),
      statuses: statuses.size,
      pods: pods.getPods().length,
    };
  }

  /** What is wrong with the manifests now. */
  sourceProblems(): readonly SourceProblem[] {
    return this.#sources.flatMap((source) => source.problems());
  }

  /** The desired pods with the status they have here. */
  podsWithStatus(): readonly Pod[] {
    return this.pods
      .getPods()
      .map((pod) => ({ ...pod, status: this.statuses.getPodStatus(pod.metadata.uid) ?? pod.status }));
  }

  #findPod(uid: PodUid): Pod | undefined {
    return this.pods.getPodByUid(uid);
  }

  #isActive(pod: Pod): boolean {
    const { uid } = pod.metadata;
    if (this.workers.queries.isPodKnownTerminated(uid)) return false;
    const isOver =
      isTerminalPhase(pod.status.phase) || isTerminalPhase(this.statuses.getPodStatus(uid)?.phase);
    return !isOver || this.workers.queries.isPodTerminationRequested(uid);
  }

  #makeSources(): readonly (FileSource | HttpSource)[] {
    const { clock, logger, machine } = this.#deps;
    const settings = this.#settings;
    const base = {
      nodeName: settings.nodeName,
      rules: { enabled: settings.isGateEnabled, apiReferences: 'refused' },
      clock,
      logger,
      onProblem: (problem: SourceProblem) => logger.warn(describeProblem(problem)),
    } as const;
    const file = new FileSource({
      ...base,
      path: settings.staticPodPath,
      files: machine.manifests,
      checkMs: settings.fileCheckMs,
      setPods: (pods, signal) => this.config.set('file', pods, signal),
    });
    const http = new HttpSource({
      ...base,
      url: settings.staticPodUrl,
      headers: settings.staticPodUrlHeader,
      get: machine.httpGet,
      checkMs: settings.httpCheckMs,
      setPods: (pods, signal) => this.config.set('http', pods, signal),
    });
    return [
      ...(settings.staticPodPath === '' ? [] : [file]),
      ...(settings.staticPodUrl === '' ? [] : [http]),
    ];
  }

  #makeQos(cgroups: CgroupManager): QosContainerManager {
    const { clock, logger } = this.#deps;
    const { cgroupRoot, cgroupDriver, capacity } = this.#settings;
    return new QosContainerManager({
      cgroups,
      cgroupRoot: parseCgroupPath(cgroupRoot, cgroupDriver),
      kubepods: kubepodsValues(capacity, { milliCpu: 0, memoryBytes: 0 }),
      activePods: () => this.pods.getPods().filter((pod) => this.#isActive(pod)),
      clock,
      logger,
    });
  }

  #makePodCgroups(cgroups: CgroupManager): PodContainerManager {
    const { node, podPidsLimit } = this.#settings;
    return new PodContainerManager({
      cgroups,
      qos: this.#qos,
      settings: {
        cpuCfsQuota: node.cpuQuota === 'enforced',
        cpuCfsQuotaPeriodUs: Number(node.cpuPeriodUs),
        podPidsLimit,
      },
      journal: this.flights,
      logger: this.#deps.logger,
    });
  }

  #makeRuntime(
    cgroups: PodContainerManager,
    directories: PodDirectories,
    volumes: PlainVolumes,
    crashBackoff: CrashBackoff,
    runtimeName: string,
  ): PodRuntime {
    const { clock, random, logger, cri, machine } = this.#deps;
    const settings = this.#settings;
    const { podLogsDir, logLinksDir, pulls, gc } = settings;
    return new PodRuntime({
      cri,
      clock,
      random,
      logger,
      journal: this.flights,
      files: machine.files,
      planner: this.#makePlanner(cgroups, directories, volumes),
      crashBackoff,
      hooks: noHooks,
      credentials: noCredentials,
      pods: {
        sourcesReady: () => this.config.allReady(),
        shouldPodContentBeRemoved: (uid) => this.workers.queries.shouldPodContentBeRemoved(uid),
        shouldPodRuntimeBeRemoved: (uid) => this.workers.queries.shouldPodRuntimeBeRemoved(uid),
      },
      settings: { runtimeName, podLogsDir, logLinksDir, pulls, gc },
    });
  }

  #makePlanner(
    cgroups: PodContainerManager,
    directories: PodDirectories,
    volumes: PlainVolumes,
  ): NodePlanner {
    const { random, logger, machine } = this.#deps;
    const settings = this.#settings;
    const { node, podLogsDir, clusterDns, clusterDomain, resolvConf, capacity } = settings;
    const allocatable = readResources({ cpu: `${capacity.milliCpu}m`, memory: String(capacity.memoryBytes) });
    return new NodePlanner(
      {
        node,
        podLogsDir,
        podsDir: directories.podsDir,
        seccomp: { profileRoot: posix.join(settings.rootDir, 'seccomp'), fallback: settings.seccompFallback },
        selinux: 'disabled',
        thermalThrottlePaths: [],
        clusterDns,
        clusterDomain,
        resolvConf,
        stopSignals: 'ignored',
      },
      {
        random,
        journal: this.flights,
        nodeEvent: (event) => logger.warn(event.message, { reason: event.reason }),
        readNodeFile: (path) => machine.readFile(path),
        nodeIps: () => settings.nodeIps,
        allocatable: () => allocatable,
        cgroupParent: (pod) => cgroups.cgroupParent(pod),
        runtimeHandler: async () => '',
        supportsRecursiveReadOnly: () => false,
        objects: undefined,
        services: () => ({ state: 'none' }),
        volumes: (uid) => {
          const pod = this.workers.activePod(uid)?.pod ?? this.#findPod(uid);
          return pod === undefined ? new Map() : volumes.of(pod);
        },
        volumeGroups: () => [],
      },
    );
  }

  #makeWorkers(
    cgroups: PodContainerManager,
    directories: PodDirectories,
    volumes: PlainVolumes,
    queue: WorkQueue<PodUid>,
  ): PodWorkers {
    const { clock, random, logger, metrics } = this.#deps;
    const syncer = new KubeletPodSyncer({
      clock,
      logger,
      journal: this.flights,
      runtime: this.#runtime,
      statuses: this.statuses,
      cgroups,
      directories,
      volumes,
      isTerminationRequested: (uid) => this.workers.queries.isPodTerminationRequested(uid),
      isWanted: (uid) => this.#findPod(uid) !== undefined,
      networkProblems: () => this.runtimeState.problems().network,
      nodeIps: () => this.#settings.nodeIps,
      startedAt: clock.now(),
      hasUsableSandbox: (pod, observed) => decideSandbox(pod, observed).kind === 'keep',
    });
    return new PodWorkers({
      clock,
      random,
      log: logger,
      journal: this.flights,
      syncer,
      observed: this.pleg.cache,
      requestRelist: (uid) => this.pleg.requestRelist(uid),
      queue,
      syncFrequencyMs: this.#settings.syncFrequencyMs,
      metrics: workerMetrics(metrics),
    });
  }

  #makeCleanups(
    cgroups: PodContainerManager,
    directories: PodDirectories,
    crashBackoff: CrashBackoff,
  ): PodCleanups {
    const { clock, logger } = this.#deps;
    return new PodCleanups({
      logger,
      journal: this.flights,
      pods: this.pods,
      workers: this.workers,
      runningPods: (signal) => this.running.refresh(signal),
      statuses: this.statuses,
      cgroups,
      directories,
      isActive: (pod) => this.#isActive(pod),
      forgetPod: (uid) => this.#runtime.forgetPod(uid),
      collectBackoffs: () => crashBackoff.collect(clock.now()),
      collectGarbage: () => this.#garbage.collectSoon(),
      observe: () => {},
    });
  }

  #makeLoop(queue: WorkQueue<PodUid>, cleanups: PodCleanups): SyncLoop {
    const { clock, random, logger } = this.#deps;
    const silent = { next: () => new Promise<undefined>(() => {}) };
    return new SyncLoop({
      clock,
      logger,
      pause: new Backoff(loopPause, random),
      problems: () => this.problems(),
      inputs: {
        config: { next: (signal) => this.config.nextUpdate(signal) },
        pleg: { next: (signal) => this.pleg.nextEvent(signal) },
        sync: ticker(clock, syncTickMs),
        housekeeping: ticker(clock, housekeepingMs),
        probes: silent,
        devices: silent,
      },
      handler: new PodHandlers({
        clock,
        logger,
        journal: this.flights,
        pods: this.pods,
        workers: this.workers,
        sources: this.config,
        statuses: this.statuses,
        queue,
        admit: (_pod, others) => this.#admit(others.length),
        deleteSurplus: (uid, containerId) =>
          this.#runtime.deleteSurplus(this.pleg.cache.get(uid), {
            kind: 'instances-of',
            containerId,
            keep: Math.max(this.#settings.gc.maxPerContainer, 1),
          }),
        cleanUp: (signal) => cleanups.run(signal),
        isPastDeadline: (pod) =>
          isPastDeadline(pod, this.statuses.getPodStatus(pod.metadata.uid), clock.now()),
      }),
    });
  }

  #admit(others: number) {
    const { maxPods } = this.#settings;
    if (others < maxPods) return { admit: true } as const;
    const message = `Node didn't have enough resource: pods, requested: 1, used: ${others}, capacity: ${maxPods}`;
    return { admit: false, reason: 'OutOfpods', message } as const;
  }
}

function sourceNames({ staticPodPath, staticPodUrl }: KubeletSettings): readonly ('file' | 'http')[] {
  return [
    ...(staticPodPath === '' ? [] : (['file'] as const)),
    ...(staticPodUrl === '' ? [] : (['http'] as const)),
  ];
}

function named(room: string, counts: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(counts).map(([what, count]) => [`${room}.${what}`, count]));
}
