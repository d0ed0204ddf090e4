import { EarlierPods } from '../checkpoints/index.ts';
import { describeError, HintLatch, WorkQueue } from '../lib/index.ts';
import type { NodeShutdown } from '../node/shutdown/index.ts';
import { type Pleg, RunningPods } from '../pleg/index.ts';
import {
  isTerminalPhase,
  type Pod,
  type PodJournal,
  PodManager,
  type PodUid,
  qosClass,
} from '../pods/index.ts';
import { networkProber } from '../probes/index.ts';
import {
  type Allotments,
  admissionMetrics,
  type CgroupManager,
  type EvictionManager,
  PendingAdmissions,
  PodAdmission,
  type PodCgroups,
  type PressureCondition,
  preemptedEvent,
  preemptedStatus,
} from '../resources/index.ts';
import {
  type ImageGcManager,
  LogFollowers,
  type PodLimitsAccess,
  type RuntimeManager,
  type Surplus,
} from '../runtime/index.ts';
import type { StreamingHost } from '../server/index.ts';
import { type FileSource, type HttpSource, PodConfig, type SourceProblem } from '../sources/index.ts';
import { StatusManager } from '../status/index.ts';
import { VolumeMetrics, volumeSpace } from '../volumes/index.ts';
import { killPodNow, PodWorkers, workerMetrics } from '../workers/index.ts';
import { isPastDeadline } from './active-deadline.ts';
import { admissionFacts, describedNode } from './admission-facts.ts';
import { Background, type BackgroundLoops } from './background.ts';
import { endedContainers } from './ended-containers.ts';
import { makeEviction } from './eviction/index.ts';
import { FlightRecorder } from './flight-recorder.ts';
import { GarbageCollector } from './garbage-collector.ts';
import { type HealthSource, livenessChecks, readinessChecks } from './health.ts';
import { Housekeeping } from './housekeeping.ts';
import { ImageAccess } from './image-access.ts';
import { ImageCollector, makeImageGc } from './image-collector.ts';
import { KeptPods } from './kept-pods.ts';
import type { KubeletDeps } from './kubelet-deps.ts';
import { NodeAllocation } from './make-allocation.ts';
import { logLoops } from './make-log-manager.ts';
import { makePleg } from './make-pleg.ts';
import { makePodRuntime } from './make-pod-runtime.ts';
import { makePodSyncer } from './make-pod-syncer.ts';
import { makeSyncLoop } from './make-sync-loop.ts';
import { collectPodMetrics, type KubeletObserver, kubeletMetrics, startedAfterMs } from './metrics.ts';
import { type CgroupUpkeep, nodeCgroups, openCgroups } from './node-cgroups.ts';
import { NodeHardware } from './node-hardware.ts';
import { NodeJournal } from './node-journal.ts';
import { loadShutdown, type MakeShutdown } from './node-shutdown.ts';
import { oomLoop } from './oom-loop.ts';
import { openAllotments, type PodView } from './open-allotments.ts';
import { PodFacts } from './pod-facts.ts';
import { PodHandlers } from './pod-handlers.ts';
import { PodProbes } from './pod-probes.ts';
import { manifestSources, sourceNames } from './pod-sources.ts';
import { problemsOfPod } from './problems-of-pod.ts';
import { RestartAhead } from './restart-ahead.ts';
import { checkRuntime, RuntimeState, watchRuntime } from './runtime-state.ts';
import type { KubeletSettings } from './settings.ts';
import { Statistics } from './statistics.ts';
import { streamingHost } from './streaming-host.ts';
import type { SyncLoop } from './sync-loop.ts';
import { Watchdog } from './watchdog.ts';

/** What is opened before there is a kubelet. */
interface OpenedParts {
  readonly cgroups: CgroupManager;
  readonly allotments: Allotments;
  readonly makeShutdown: MakeShutdown | undefined;
}

/** One node's kubelet: all rooms, wired. Nothing runs before `run`. */
export class Kubelet {
  readonly flights: FlightRecorder;
  readonly node: NodeJournal;
  readonly config: PodConfig;
  readonly pods = new PodManager();
  readonly statuses: StatusManager;
  readonly workers: PodWorkers;
  readonly pleg: Pleg;
  readonly loop: SyncLoop;
  readonly runtimeState: RuntimeState;
  readonly running: RunningPods;
  /** The ways into running pods. */
  readonly streams: StreamingHost;
  readonly probes: PodProbes;
  /** To be told of whoever reads a log of this node. */
  readonly logFollowers = new LogFollowers();
  /** Removes images nobody uses; undefined where all stay. */
  readonly imageGc: ImageGcManager | undefined;
  readonly #settings: KubeletSettings;
  readonly #deps: KubeletDeps;
  readonly #journal: PodJournal;
  readonly #queue: WorkQueue<PodUid>;
  readonly #runtime: RuntimeManager;
  readonly #cgroups: CgroupUpkeep;
  readonly #podCgroups: PodCgroups;
  readonly #garbage: GarbageCollector;
  readonly #observer: KubeletObserver;
  /** Raised when the runtime may have gone away or come back. */
  readonly #runtimeHints: HintLatch;
  readonly #housekeeping: Housekeeping;
  readonly #facts = new PodFacts(this, (pod) => this.#allocation.manager.withAllocation(pod));
  readonly #allocation: NodeAllocation;
  readonly #kept: KeptPods;
  readonly #ahead: RestartAhead;
  readonly #images: ImageAccess;
  readonly #earlier: EarlierPods;
  readonly #sources: ReadonlyMap<string, FileSource | HttpSource>;
  readonly #background: Background;
  /** What the node and its pods have used. */
  readonly statistics: Statistics;
  readonly #admission: PodAdmission;
  readonly #pendingAdmissions = new PendingAdmissions();
  /** Ends the pods when the machine shuts down; undefined where they go down with it. */
  readonly shutdown: NodeShutdown | undefined;
  /** What of the machine is given to containers for themselves. */
  readonly hardware: NodeHardware;
  readonly #eviction: EvictionManager | undefined;

  static async create(settings: KubeletSettings, deps: KubeletDeps, runtimeName: string): Promise<Kubelet> {
    const cgroups = await openCgroups(settings, deps);
    const made: { kubelet?: Kubelet } = {};
    const allotments = await openAllotments(settings, deps, () => made.kubelet?.podView());
    const makeShutdown = await loadShutdown(settings);
    made.kubelet = new Kubelet(settings, deps, { cgroups, allotments, makeShutdown }, runtimeName);
    return made.kubelet;
  }

  private constructor(
    settings: KubeletSettings,
    deps: KubeletDeps,
    { cgroups, allotments, makeShutdown }: OpenedParts,
    runtimeName: string,
  ) {
    const { clock, random, logger } = deps;
    const { cluster } = deps;
    this.#settings = settings;
    this.#deps = deps;
    this.flights = new FlightRecorder({ clock, nodeName: settings.nodeName });
    const journal = cluster?.journal(this.flights) ?? this.flights;
    this.#journal = journal;
    this.#queue = new WorkQueue<PodUid>(clock);
    this.node = new NodeJournal({ clock, logger, nodeName: settings.nodeName, tell: cluster?.nodeEvent });
    this.#observer = kubeletMetrics(deps.metrics);
    this.#runtimeHints = new HintLatch(clock);
    this.#background = new Background(deps);
    collectPodMetrics(deps.metrics, () => this.pods.getPods());
    this.runtimeState = new RuntimeState(clock);
    this.statuses = new StatusManager({ clock, logger, findPod: (uid) => this.#facts.wantedOrMirrored(uid) });
    this.config = new PodConfig({
      sources: sourceNames(settings),
      clock,
      logger,
      journal,
      hasEnded: (uid) => this.#facts.hasEnded(uid),
    });
    this.#sources = manifestSources(settings, {
      ...deps,
      config: this.config,
      node: this.node,
      ranHere: (uid) => this.#kept.notes.ranInThisBoot(uid),
    });
    const {
      upkeep,
      pods: podCgroups,
      limits,
    } = nodeCgroups(settings, cgroups, {
      clock,
      logger,
      journal,
      node: this.node,
      processes: deps.machine.processes,
      activePods: (quality) => this.#facts.active((pod) => qosClass(pod) === quality),
      hasExclusiveCpus: (pod) => allotments.hasExclusiveCpus(pod),
    });
    this.#cgroups = upkeep;
    this.#podCgroups = podCgroups;
    this.hardware = new NodeHardware(settings, deps, {
      allotments,
      facts: this.#facts,
      sources: this.config,
      couldRun: (uid) => this.workers.queries.couldHaveRunningContainers(uid),
      lastSeen: (uid) => this.pleg.cache.lastSeen(uid),
      known: {
        all: () => this.pods.getPods(),
        find: (namespace, name) => this.pods.getPodByName(namespace, name),
      },
    });
    this.#allocation = this.#makeAllocation();
    this.#kept = new KeptPods(settings, {
      ...deps,
      devices: this.hardware.devices,
      claimDrivers: this.hardware.claims?.drivers,
      journal,
      node: this.node,
      lookAgain: (uid, delayMs) => this.syncSoon(uid, delayMs),
    });
    const { volumes, csi } = this.#kept;
    const space = volumeSpace(deps.machine, csi);
    this.statistics = new Statistics(settings, deps, {
      space,
      observed: () => this.pleg.cache.all(),
      known: (uid) => this.#facts.knownWithStatus(uid),
      cgroupOf: (pod) => podCgroups.cgroupParent(pod),
      placesOf: (pod) => volumes.placesOf(pod),
    });
    new VolumeMetrics({ clock, volumes, space, pods: () => this.pods.getPods() }).register(deps.metrics);
    this.#earlier = new EarlierPods({
      notes: this.#kept.notes,
      observed: (uid) => this.pleg.cache.get(uid),
      sources: this.config,
    });
    this.#images = new ImageAccess(settings, { ...deps, journal });
    this.imageGc = makeImageGc(settings, deps, { node: this.node, leases: this.#images.leases });
    this.#runtime = this.#makeRuntime(podCgroups, limits, runtimeName);
    this.running = new RunningPods(clock, this.#runtime);
    this.streams = streamingHost(this.pods, this.#runtime.streams);
    this.probes = new PodProbes({
      ...deps,
      journal,
      prober: deps.machine.prober ?? networkProber({ clock, random, dialHttp: deps.machine.dialHttp }),
      runner: this.#runtime,
      statuses: this.statuses,
      isTerminating: (uid) => this.#facts.isTerminationRequested(uid),
    });
    this.#garbage = new GarbageCollector({
      clock,
      node: this.node,
      collect: async (scope, signal) => {
        await this.#images.prune(signal);
        await this.#runtime.garbageCollect(scope, signal);
      },
    });
    this.pleg = makePleg(deps, {
      runtime: this.#runtime,
      hints: this.#runtimeHints,
      exitAnnounced: (uid, containerId) => this.#ahead.announced(uid, containerId),
      isBeingEnded: (uid) => this.workers.queries.isPodTerminationRequested(uid),
    });
    this.#ahead = new RestartAhead({
      logger,
      observed: (uid) => this.pleg.cache.get(uid),
      findPod: (uid) => this.#facts.workedOn(uid),
      isTerminationRequested: (uid) => this.#facts.isTerminationRequested(uid),
      prepare: (request, mayMake, signal) => this.#runtime.prepareRestart(request, mayMake, signal),
    });
    this.workers = this.#makeWorkers(podCgroups);
    this.#housekeeping = this.#makeHousekeeping(podCgroups);
    this.#eviction = makeEviction(settings, deps, {
      journal,
      node: this.node,
      workers: () => this.workers,
      // One that is not taken yet uses nothing, and waits for just what others use.
      activePods: () => this.#facts.active(({ metadata: { uid } }) => !this.#pendingAdmissions.has(uid)),
      statistics: this.statistics,
      reclaim: {
        deleteAllUnusedContainers: (signal) => this.#garbage.collectNow('terminated-pods-too', signal),
        deleteUnusedImages: async (signal) => await this.imageGc?.deleteUnusedImages(signal),
      },
      collectGarbage: (signal) => this.#garbage.collectNow('deleted-pods', signal),
      conditionsChanged: () => cluster?.pressuresChanged(),
    });
    this.#admission = new PodAdmission({
      clock,
      logger,
      journal,
      pending: this.#pendingAdmissions,
      facts: admissionFacts(settings, {
        pending: this.#pendingAdmissions,
        standing: (pod) => this.#earlier.standing(pod),
        active: () => this.#facts.active().map((pod) => this.#allocation.manager.counted(pod)),
        isTerminating: (uid) => this.#facts.isTerminationRequested(uid),
        node: () => cluster?.node(),
        nodeFor: (pod, node) => this.hardware.devices?.nodeFor(pod, node) ?? node,
        abilities: () => this.runtimeState.abilities,
        pressures: () => this.pressures(),
        isShuttingDown: () => this.shutdown?.isNow ?? false,
      }),
      fetchNode: cluster?.fetchNode ?? (async () => describedNode(settings)),
      preempt: async (victim, signal) => {
        journal.event(victim, preemptedEvent);
        const options = { why: 'eviction', statusFn: preemptedStatus } as const;
        await killPodNow({ clock, journal, workers: this.workers }, victim, options, signal);
      },
      wasAdmitted: (uid) => this.#kept.notes.wasLetRun(uid),
      allotter: this.hardware.allotter,
      adopt: (pod) => allotments.adopt(pod),
      underPressure: settings.underPressure,
      observer: admissionMetrics(deps.metrics),
    });
    this.shutdown = makeShutdown?.(deps, {
      node: this.node,
      journal,
      workers: () => this.workers,
      active: () => this.#facts.active(),
      settled: () => this.#kept.notes.settled(),
    });
    this.loop = makeSyncLoop(
      deps,
      {
        sources: this.config,
        pleg: this.pleg,
        housekeeping: this.#housekeeping,
        probes: this.probes,
        devices: this.hardware.devices,
      },
      { handler: this.#makeHandlers(), problems: () => this.problems() },
    );
    const countEnds = endedContainers(deps.metrics);
    this.statuses.onChange((change) => {
      countEnds(change);
      const ms = startedAfterMs(change, clock.now());
      if (ms !== undefined) this.#observer.startedToRun(ms);
      void this.#kept.notes.published(change.pod, change.after);
      if (!change.isFinished && !isTerminalPhase(change.after.phase)) return;
      this.#allocation.manager.ended(change.uid);
      this.#admission.released();
    });
  }

  /** Runs until the signal ends it; pods run on. */
  async run(signal: AbortSignal): Promise<void> {
    using _open = this.#cgroups;
    this.node.event({ type: 'Normal', reason: 'Starting', message: 'Starting kubelet.' });
    for (const event of this.#settings.startEvents ?? []) this.node.event(event);
    try {
      await Promise.all([
        this.#cgroups.start(signal),
        this.#kept.open(signal),
        this.#images.open(),
        this.hardware.open(signal),
        this.#allocation.open(),
      ]);
    } catch (error) {
      // Told to end before it began: an end like any other.
      if (signal.aborted) return;
      throw error;
    }
    try {
      await this.#background.beside(this.#loops(), (inner) => this.#work(inner), signal);
    } finally {
      this.#ahead[Symbol.dispose]();
      this.statistics[Symbol.dispose]();
      await this.#runtime[Symbol.asyncDispose]();
    }
  }

  async #work(signal: AbortSignal): Promise<void> {
    const settled = this.#images.settleLeftovers(signal);
    try {
      await this.loop.run(signal);
    } finally {
      await settled;
      await this.#pendingAdmissions[Symbol.asyncDispose]();
      await this.probes[Symbol.asyncDispose]();
      await this.workers[Symbol.asyncDispose]();
      await this.hardware[Symbol.asyncDispose]();
      await this.#housekeeping[Symbol.asyncDispose]();
    }
  }

  #loops(): BackgroundLoops {
    const watch = {
      ...this.#deps,
      state: this.runtimeState,
      looked: (error: unknown) => this.#looked(error),
      hints: this.#runtimeHints,
    };
    const beside = this.#deps.cluster?.loops();
    return {
      again: {
        ...beside?.again,
        'runtime watch': { run: (signal) => watchRuntime(watch, signal) },
        watchdog: this.#makeWatchdog(),
        cgroups: this.#cgroups,
        'garbage collector': this.#garbage,
        ...oomLoop(this.#settings, this.#deps, {
          node: this.node,
          journal: this.#journal,
          pods: this.pods,
          observed: (uid) => this.pleg.cache.lastSeen(uid),
        }),
        ...(this.shutdown && { 'node shutdown': this.shutdown }),
        ...this.#imageLoops(),
        ...logLoops(this.#settings, this.#deps, { cache: this.pleg.cache, followers: this.logFollowers }),
        resizes: this.#allocation.manager,
        ...(this.#eviction && { 'eviction manager': this.#eviction }),
        ...this.#pluginLoops(),
        ...Object.fromEntries(this.#sources),
      },
      once: { ...beside?.once, pleg: this.pleg },
    };
  }

  #imageLoops(): BackgroundLoops['again'] {
    const manager = this.imageGc;
    if (manager === undefined) return {};
    return { 'image garbage': new ImageCollector({ ...this.#deps, node: this.node, manager }) };
  }

  #pluginLoops(): BackgroundLoops['again'] {
    const { plugins, csi, csiUpdates } = this.#kept;
    return {
      ...(plugins && { plugins }),
      ...this.hardware.loops(),
      ...(csi && { 'CSI volumes': csi }),
      ...(csiUpdates && { 'limits of CSI drivers': csiUpdates }),
    };
  }

  /** The volumes that must stay attached to this node; undefined while that is not known. */
  volumesInUse(): readonly string[] | undefined {
    return this.#kept.csi?.inUse();
  }

  /** Why pods cannot be worked on now. */
  problems(): readonly string[] {
    const pleg = this.pleg.problem();
    return [...this.runtimeState.problems().runtime, ...(pleg === undefined ? [] : [pleg])];
  }

  /** What the node is short of. */
  pressures(): readonly PressureCondition[] {
    return this.#eviction?.conditions ?? [];
  }

  /** The runtime is asked how it is, now; what it says is in `runtimeState`. */
  checkRuntime(signal: AbortSignal): Promise<void> {
    return checkRuntime(
      { ...this.#deps, state: this.runtimeState, looked: (error) => this.#looked(error) },
      signal,
    );
  }

  /** Something about the pod that nobody else would notice has changed, or may have after this long. */
  syncSoon(uid: PodUid, delayMs = 0): void {
    this.#queue.add(uid, delayMs);
  }

  /** Why the node should be ended and begun anew, and why it cannot work on pods now. */
  get health() {
    const { loop, config: sources, runtimeState: runtime, pleg } = this;
    const { syncFrequencyMs } = this.#settings;
    const source: HealthSource = {
      clock: this.#deps.clock,
      syncFrequencyMs,
      loop,
      sources,
      runtime,
      pleg,
      background: this.#background,
    };
    return { live: livenessChecks(source), ready: readinessChecks(source) };
  }

  /** The pods as those see them who give out what has its place on the machine. */
  podView(): PodView {
    return {
      active: () => (this.config.allReady() ? this.#facts.active() : undefined),
      providers: () => (this.hardware.devices === undefined ? [] : [this.hardware.devices]),
      mayRun: (uid) => this.workers.queries.couldHaveRunningContainers(uid),
      isAnyEnding: (besides) => {
        const { queries } = this.workers;
        const isEnding = (uid: PodUid) =>
          queries.isPodTerminationRequested(uid) && queries.couldHaveRunningContainers(uid);
        return [...this.workers.uids()].some((uid) => uid !== besides && isEnding(uid));
      },
      observed: (uid) => this.pleg.cache.lastSeen(uid),
    };
  }

  /** What the rooms remember of pods: all zero on an empty node with nothing under way. */
  held(): Readonly<Record<string, number>> {
    const { workers, pleg, statuses, pods } = this;
    return {
      ...named('workers', workers.remembered),
      ...named('pleg', pleg.remembered),
      ...named('runtime', this.#runtime.pending()),
      ...named('probes', this.probes.held()),
      ...named('resources', this.#allocation.held()),
      statuses: statuses.size,
      directories: this.#housekeeping.orphanDirectories,
      notes: this.#kept.notes.size,
      users: this.#kept.users.size,
      claims: this.#deps.cluster?.claims.size ?? 0,
      drivers: this.#kept.csi?.size ?? 0,
      ...this.hardware.held(),
      pods: pods.getPods().length,
    };
  }

  /** The addresses of the node: as the cluster knows them, or else as the machine does. */
  nodeIps(): readonly string[] {
    const told = this.#deps.cluster?.nodeIps() ?? [];
    return told.length > 0 ? told : this.#settings.nodeIps;
  }

  /** What is wrong with the manifests now. */
  sourceProblems(): readonly SourceProblem[] {
    return [...this.#sources.values()].flatMap((source) => source.problems());
  }

  /** Those of them that concern one pod, by any of its names. */
  sourceProblemsOf(key: string): readonly SourceProblem[] {
    const stories = this.flights.find(key);
    const names = new Set(stories.map(({ fullName }) => fullName));
    const isCalled = (fullName: string) => names.has(fullName) || this.flights.isCalled(fullName, key);
    return problemsOfPod(this.sourceProblems(), { isCalled, isKnown: stories.length > 0 });
  }

  /** The path of a pod's cgroup below each tree of cgroups; empty for none. */
  cgroupOf(pod: Pod): string {
    return this.#podCgroups.cgroupParent(pod);
  }

  /** The desired pods with the status they have here. */
  podsWithStatus(): readonly Pod[] {
    return this.#facts.withStatus();
  }

  /** The same, to be told to others: what they hear, a later kubelet knows as well, however soon this one is killed. */
  async podsToTell(): Promise<readonly Pod[]> {
    const pods = this.podsWithStatus();
    await this.#kept.notes.settled();
    return pods;
  }

  #forgetPod(uid: PodUid): void {
    this.#runtime.forgetPod(uid);
    this.#deps.cluster?.objects.unregister(uid);
    this.#deps.cluster?.tokens.forgetPod(uid);
  }

  #makeRuntime(
    cgroups: PodCgroups,
    podLimits: PodLimitsAccess | undefined,
    runtimeName: string,
  ): RuntimeManager {
    return makePodRuntime(this.#settings, this.#deps, {
      runtimeName,
      journal: this.#journal,
      nodeIps: () => this.nodeIps(),
      node: this.node,
      cgroups,
      podLimits,
      allocation: this.#allocation,
      kept: this.#kept,
      images: this.#images,
      facts: this.#facts,
      grants: (pod, container, signal) => this.hardware.grants(pod, container, signal),
      podGrants: (pod) => ({ exclusiveCpus: this.hardware.hasExclusiveCpus(pod) }),
      pods: {
        shouldPodContentBeRemoved: (uid) => this.workers.queries.shouldPodContentBeRemoved(uid),
        shouldPodRuntimeBeRemoved: (uid) => this.workers.queries.shouldPodRuntimeBeRemoved(uid),
        secondsLeft: (uid) => this.#earlier.secondsLeft(uid),
      },
      abilities: () => this.runtimeState.abilities,
    });
  }

  #makeWorkers(cgroups: PodCgroups): PodWorkers {
    const { clock, random, logger, metrics } = this.#deps;
    const { statuses, probes, pleg, runtimeState } = this;
    const journal = this.#journal;
    const syncer = makePodSyncer(this.#deps, {
      journal,
      nodeIps: () => this.nodeIps(),
      rejected: (reason) => this.#observer.rejected(reason),
      claims: this.hardware.claims?.manager,
      deviceStatus: this.hardware.deviceStatus,
      cluster: this.#deps.cluster,
      runtime: this.#runtime,
      statuses,
      cgroups,
      probes,
      kept: this.#kept,
      facts: this.#facts,
      pleg,
      runtimeState,
      allocation: this.#allocation,
    });
    return new PodWorkers({
      clock,
      random,
      log: logger,
      journal,
      syncer,
      observed: pleg.cache,
      requestRelist: (uid) => pleg.requestRelist(uid),
      withAllocation: (pod) => this.#allocation.manager.withAllocation(pod),
      queue: this.#queue,
      mayJudge: (uid) => this.#earlier.mayJudge(uid),
      syncFrequencyMs: this.#settings.syncFrequencyMs,
      metrics: workerMetrics(metrics),
    });
  }

  #makeHousekeeping(cgroups: PodCgroups): Housekeeping {
    const { directories: podDirectories, notes, users } = this.#kept;
    return new Housekeeping({
      ...this.#deps,
      node: this.node,
      observer: this.#observer,
      journal: this.#journal,
      pods: this.pods,
      workers: this.workers,
      statuses: this.statuses,
      cgroups,
      podDirectories,
      runningPods: (signal) => this.running.refresh(signal),
      hearsOfChanges: () => this.pleg.eventTrust === 'trusted',
      isActive: (pod) => this.#facts.isActive(pod),
      isSettling: (uid) => this.#pendingAdmissions.has(uid),
      earlier: this.#earlier,
      notes,
      users,
      allocation: this.#allocation,
      probes: this.probes,
      forgetPod: (uid) => this.#forgetPod(uid),
      collectBackoffs: () => {
        this.#kept.collectBackoffs();
        this.hardware.devices?.free();
      },
      collectGarbage: () => this.#garbage.collectSoon(),
    });
  }

  #makeAllocation(): NodeAllocation {
    return new NodeAllocation(this.#settings, this.#deps, {
      journal: this.#journal,
      node: this.node,
      findPod: (uid) => (this.#facts.hasEnded(uid) ? undefined : this.#facts.wanted(uid)),
      areSourcesReady: () => this.config.allReady(),
      judge: (pod) => this.#admission.resizeRefusal(pod),
      syncPod: (pod) => {
        const { mirrorPod } = this.pods.getPodAndMirrorPod(pod);
        const startStamp = this.#deps.clock.stamp();
        this.workers.updatePod({ updateType: 'update', pod, mirrorPod, startStamp });
      },
    });
  }

  #makeWatchdog(): Watchdog {
    const { clock, logger } = this.#deps;
    return new Watchdog({
      clock,
      logger,
      journal: this.#journal,
      desiredPods: () => this.pods.getPods(),
      workers: this.workers,
      observe: (counts) => this.#observer.stuck(counts),
    });
  }

  #looked(error: unknown): void {
    if (error === undefined) this.node.mended('runtime', 'The container runtime answers again');
    else this.node.noteTrouble('runtime', `The container runtime does not answer: ${describeError(error)}`);
    this.#deps.runtimeLooked?.(error);
  }

  #makeHandlers(): PodHandlers {
    const { clock, logger } = this.#deps;
    return new PodHandlers({
      clock,
      logger,
      journal: this.#journal,
      pods: this.pods,
      workers: this.workers,
      sources: this.config,
      statuses: this.statuses,
      nodeIps: () => this.nodeIps(),
      staticChanged: (name) => this.#deps.cluster?.staticChanged(name),
      queue: this.#queue,
      rejected: (reason) => this.#observer.rejected(reason),
      earlier: this.#earlier,
      admission: this.#admission,
      pending: this.#pendingAdmissions,
      allocation: this.#allocation.manager,
      deleteSurplus: (uid, containerId) =>
        this.#runtime.deleteSurplus(this.pleg.cache.get(uid), this.#surplus(uid, containerId)),
      cleanUp: (found, signal) => this.#housekeeping.cleanUp(found, signal),
      changed: () => this.#housekeeping.changed(),
      isPastDeadline: (pod) => isPastDeadline(pod, this.statuses.getPodStatus(pod.metadata.uid), clock.now()),
    });
  }

  /** What may go when a container has died: all of a pod that nobody wants any more, else its older instances. */
  #surplus(uid: PodUid, containerId: string): Surplus {
    if (this.workers.queries.shouldPodContentBeRemoved(uid)) return { kind: 'all' };
    return { kind: 'instances-of', containerId, keep: Math.max(this.#settings.gc.maxPerContainer, 1) };
  }
}

function named(room: string, counts: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(counts).map(([what, count]) => [`${room}.${what}`, count]));
}
