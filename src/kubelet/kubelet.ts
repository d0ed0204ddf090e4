import { Backoff, describeError, HintLatch, randomHex, WorkQueue } from '../lib/index.ts';
import { Pleg, plegMetrics, proofContainerId, RunningPods, runtimeEvents } from '../pleg/index.ts';
import { isTerminalPhase, type Pod, PodManager, type PodUid } from '../pods/index.ts';
import { networkProber } from '../probes/index.ts';
import type { CgroupManager, PodCgroups } from '../resources/index.ts';
import {
  CrashBackoff,
  decideSandbox,
  idsOfBlock,
  PodRuntime,
  type Surplus,
  startMetrics,
  UserNamespaces,
} from '../runtime/index.ts';
import type { StreamingHost } from '../server/index.ts';
import {
  type FileSource,
  type HttpSource,
  PodConfig,
  type PodUpdate,
  type SourceProblem,
} from '../sources/index.ts';
import { StatusManager } from '../status/index.ts';
import { PodWorkers, workerMetrics } from '../workers/index.ts';
import { isPastDeadline } from './active-deadline.ts';
import { admitPod, groupsProblem, kernelProblems } from './admission.ts';
import { Background, type BackgroundLoops } from './background.ts';
import { EarlierPods } from './earlier-pods.ts';
import { FlightRecorder } from './flight-recorder.ts';
import { GarbageCollector } from './garbage-collector.ts';
import { type HealthSource, livenessChecks, readinessChecks } from './health.ts';
import { Housekeeping } from './housekeeping.ts';
import { ImageAccess } from './image-access.ts';
import type { KubeletDeps } from './kubelet-deps.ts';
import { makeHooks } from './make-hooks.ts';
import { makeNodePlanner } from './make-node-planner.ts';
import { collectPodMetrics, type KubeletObserver, kubeletMetrics, startedAfterMs } from './metrics.ts';
import { type CgroupUpkeep, nodeCgroups, openCgroups } from './node-cgroups.ts';
import { NodeJournal } from './node-journal.ts';
import { PlainVolumes } from './plain-volumes.ts';
import { mountPoints, PodDirectories } from './pod-files.ts';
import { PodHandlers } from './pod-handlers.ts';
import { PodNotebook } from './pod-notebook.ts';
import { PodProbes } from './pod-probes.ts';
import { manifestSources, sourceNames } from './pod-sources.ts';
import { KubeletPodSyncer } from './pod-syncer.ts';
import { problemsOfPod } from './problems-of-pod.ts';
import { RestartAhead } from './restart-ahead.ts';
import { RuntimeState, watchRuntime, withHints } from './runtime-state.ts';
import type { KubeletSettings } from './settings.ts';
import { streamingHost } from './streaming-host.ts';
import { SyncLoop } from './sync-loop.ts';
import { ticker } from './ticker.ts';
import { Watchdog } from './watchdog.ts';

const syncTickMs = 1_000;
const loopPause = { baseMs: 100, maxMs: 5_000 };

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
  readonly #settings: KubeletSettings;
  readonly #deps: KubeletDeps;
  readonly #runtime: PodRuntime;
  readonly #cgroups: CgroupUpkeep;
  readonly #garbage: GarbageCollector;
  readonly #observer: KubeletObserver;
  /** Raised when the runtime may have gone away or come back. */
  readonly #runtimeHints: HintLatch;
  readonly #housekeeping: Housekeeping;
  readonly #notes: PodNotebook;
  readonly #users: UserNamespaces;
  readonly #ahead: RestartAhead;
  readonly #crashBackoff: CrashBackoff;
  readonly #images: ImageAccess;
  readonly #earlier: EarlierPods;
  readonly #sources: ReadonlyMap<string, FileSource | HttpSource>;
  readonly #background: Background;

  static async create(settings: KubeletSettings, deps: KubeletDeps, runtimeName: string): Promise<Kubelet> {
    const cgroups = await openCgroups(settings, { ...deps, host: deps.machine.cgroups });
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
    this.node = new NodeJournal({ clock, logger, nodeName: settings.nodeName });
    this.#observer = kubeletMetrics(deps.metrics);
    this.#runtimeHints = new HintLatch(clock);
    this.#background = new Background(deps);
    collectPodMetrics(deps.metrics, () => this.pods.getPods());
    this.runtimeState = new RuntimeState(clock);
    this.statuses = new StatusManager({ clock, logger, findPod: (uid) => this.#findTranslated(uid) });
    this.config = new PodConfig({
      sources: sourceNames(settings),
      clock,
      logger,
      journal,
      hasEnded: (uid) => this.#hasEnded(uid),
    });
    this.#sources = manifestSources(settings, {
      ...deps,
      config: this.config,
      node: this.node,
      ranHere: (uid) => this.#notes.ranInThisBoot(uid),
    });
    const { upkeep, pods: podCgroups } = nodeCgroups(settings, cgroups, {
      clock,
      logger,
      journal,
      activePods: () => this.pods.getPods().filter((pod) => this.#isActive(pod)),
    });
    this.#cgroups = upkeep;
    const directories = new PodDirectories(
      settings.rootDir,
      deps.machine.files,
      () => mountPoints(deps.machine),
      (directory, inner) => deps.machine.volumeParts.unbind(directory, inner),
    );
    this.#users = new UserNamespaces({
      logger,
      files: deps.machine.files,
      podsDir: directories.podsDir,
      idsPerPod: settings.idsPerPod ?? idsOfBlock,
      ids: settings.userIds,
    });
    const volumes = new PlainVolumes(directories, deps.machine.files, journal);
    this.#notes = new PodNotebook({
      clock,
      logger,
      files: deps.machine.files,
      directories,
      readBoot: () => deps.machine.readFile('/proc/sys/kernel/random/boot_id'),
    });
    this.#earlier = new EarlierPods({
      notes: this.#notes,
      observed: (uid) => this.pleg.cache.get(uid),
      sources: this.config,
    });
    this.#crashBackoff = new CrashBackoff({
      random,
      maxMs: settings.maxRestartWaitMs,
      keep: (uid, entries) => this.#notes.restarted(uid, entries),
    });
    this.#images = new ImageAccess(settings, { ...deps, journal });
    this.#runtime = this.#makeRuntime(podCgroups, directories, volumes, runtimeName);
    this.running = new RunningPods(clock, this.#runtime);
    this.streams = streamingHost(this.pods, this.#runtime.streams);
    this.probes = new PodProbes({
      ...deps,
      journal,
      prober: deps.machine.prober ?? networkProber({ clock, random, dialHttp: deps.machine.dialHttp }),
      runner: this.#runtime,
      statuses: this.statuses,
      isTerminating: (uid) => this.workers.queries.isPodTerminationRequested(uid),
    });
    this.#garbage = new GarbageCollector({
      clock,
      node: this.node,
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
      metrics: withHints(plegMetrics(deps.metrics), () => this.#runtimeHints.raise()),
      exitAnnounced: (uid, containerId) => this.#ahead.announced(uid, containerId),
    });
    this.#ahead = new RestartAhead({
      logger,
      observed: (uid) => this.pleg.cache.get(uid),
      findPod: (uid) => (this.#findPod(uid) === undefined ? undefined : this.workers.activePod(uid)?.pod),
      isTerminationRequested: (uid) => this.workers.queries.isPodTerminationRequested(uid),
      prepare: (request, mayMake, signal) => this.#runtime.prepareRestart(request, mayMake, signal),
    });
    const queue = new WorkQueue<PodUid>(clock);
    this.workers = this.#makeWorkers(podCgroups, directories, volumes, queue);
    this.#housekeeping = this.#makeHousekeeping(podCgroups, directories);
    this.loop = this.#makeLoop(queue);
    this.statuses.onChange((change) => {
      const ms = startedAfterMs(change, clock.now());
      if (ms !== undefined) this.#observer.startedToRun(ms);
      void this.#notes.probed(change.pod, change.after);
    });
  }

  /** Runs until the signal ends it; pods run on. */
  async run(signal: AbortSignal): Promise<void> {
    this.node.event({ type: 'Normal', reason: 'Starting', message: 'Starting kubelet.' });
    try {
      await Promise.all([this.#cgroups.start(signal), this.#recall()]);
    } catch (error) {
      // Told to end before it began: an end like any other.
      if (signal.aborted) return;
      throw error;
    }
    try {
      await this.#background.beside(this.#loops(), (inner) => this.#work(inner), signal);
    } finally {
      this.#ahead[Symbol.dispose]();
      await this.#runtime[Symbol.asyncDispose]();
    }
  }

  async #work(signal: AbortSignal): Promise<void> {
    const settled = this.#images.settleLeftovers(signal);
    try {
      await this.loop.run(signal);
    } finally {
      await settled;
      await this.probes[Symbol.asyncDispose]();
      await this.workers[Symbol.asyncDispose]();
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
    return {
      again: {
        'runtime watch': { run: (signal) => watchRuntime(watch, signal) },
        watchdog: this.#makeWatchdog(),
        cgroups: this.#cgroups,
        'garbage collector': this.#garbage,
        ...Object.fromEntries(this.#sources),
      },
      once: { pleg: this.pleg },
    };
  }

  /** What earlier kubelets have noted. */
  async #recall(): Promise<void> {
    await Promise.all([this.#notes.open(), this.#users.open(), this.#images.open()]);
    this.#crashBackoff.restore(this.#notes.restarts(), this.#deps.clock.now());
  }

  /** Why pods cannot be worked on now. */
  problems(): readonly string[] {
    const pleg = this.pleg.problem();
    return [...this.runtimeState.problems().runtime, ...(pleg === undefined ? [] : [pleg])];
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

  /** What the rooms remember of pods: all zero on an empty node with nothing under way. */
  held(): Readonly<Record<string, number>> {
    const { workers, pleg, statuses, pods } = this;
    return {
      ...named('workers', workers.remembered),
      ...named('pleg', pleg.remembered),
      ...named('runtime', this.#runtime.held()),
      ...named('probes', this.probes.held()),
      statuses: statuses.size,
      directories: this.#housekeeping.orphanDirectories,
      notes: this.#notes.size,
      users: this.#users.size,
      pods: pods.getPods().length,
    };
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

  /** The desired pods with the status they have here. */
  podsWithStatus(): readonly Pod[] {
    return this.pods
      .getPods()
      .map((pod) => ({ ...pod, status: this.statuses.getPodStatus(pod.metadata.uid) ?? pod.status }));
  }

  /** Also by the UID of its mirror. */
  #findTranslated(uid: PodUid): Pod | undefined {
    return this.#findPod(this.pods.translatePodUid(uid));
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

  #hasEnded(uid: PodUid): boolean {
    return (
      this.workers.queries.isPodTerminationRequested(uid) ||
      isTerminalPhase(this.statuses.getPodStatus(uid)?.phase)
    );
  }

  #makeRuntime(
    cgroups: PodCgroups,
    directories: PodDirectories,
    volumes: PlainVolumes,
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
      planner: makeNodePlanner(settings, {
        ...this.#deps,
        journal: this.flights,
        node: this.node,
        podsDir: directories.podsDir,
        cgroups,
        abilities: () => this.runtimeState.abilities,
        users: this.#users,
        volumesOf: (uid) => {
          const pod = this.workers.activePod(uid)?.pod ?? this.#findPod(uid);
          return pod === undefined ? new Map() : volumes.of(pod);
        },
      }),
      crashBackoff: this.#crashBackoff,
      hooks: makeHooks(settings, {
        ...this.#deps,
        journal: this.flights,
        podIps: (uid, signal) => this.#runtime.podIps(uid, signal),
      }),
      hookNotes: this.#notes.hooks,
      credentials: this.#images.credentials,
      pullRecords: this.#images.records,
      startObserver: startMetrics(this.#deps.metrics),
      startNotes: this.#notes.starts,
      pods: {
        shouldPodContentBeRemoved: (uid) => this.workers.queries.shouldPodContentBeRemoved(uid),
        shouldPodRuntimeBeRemoved: (uid) => this.workers.queries.shouldPodRuntimeBeRemoved(uid),
        secondsLeft: (uid) => this.#earlier.secondsLeft(uid),
      },
      settings: { runtimeName, podLogsDir, logLinksDir, pulls, gc },
    });
  }

  #makeWorkers(
    cgroups: PodCgroups,
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
      users: this.#users,
      notes: this.#notes,
      probes: this.probes,
      isTerminationRequested: (uid) => this.workers.queries.isPodTerminationRequested(uid),
      isWanted: (uid) => this.#findPod(uid) !== undefined,
      unwantedUnderNameOf: ({ metadata: { uid, name, namespace } }) =>
        this.pleg
          .runningUnder(name, namespace)
          .find((other) => other !== uid && this.#findPod(other) === undefined),
      networkProblems: () => this.runtimeState.problems().network,
      nodeIps: () => this.#settings.nodeIps,
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
      mayJudge: (uid) => this.#earlier.mayJudge(uid),
      syncFrequencyMs: this.#settings.syncFrequencyMs,
      metrics: workerMetrics(metrics),
    });
  }

  #makeHousekeeping(cgroups: PodCgroups, podDirectories: PodDirectories): Housekeeping {
    const { clock } = this.#deps;
    return new Housekeeping({
      ...this.#deps,
      node: this.node,
      observer: this.#observer,
      journal: this.flights,
      pods: this.pods,
      workers: this.workers,
      statuses: this.statuses,
      cgroups,
      podDirectories,
      runningPods: (signal) => this.running.refresh(signal),
      hearsOfChanges: () => this.pleg.eventTrust === 'trusted',
      isActive: (pod) => this.#isActive(pod),
      earlier: this.#earlier,
      notes: this.#notes,
      users: this.#users,
      probes: this.probes,
      forgetPod: (uid) => this.#runtime.forgetPod(uid),
      collectBackoffs: () => this.#crashBackoff.collect(clock.now()),
      collectGarbage: () => this.#garbage.collectSoon(),
    });
  }

  #makeWatchdog(): Watchdog {
    const { clock, logger } = this.#deps;
    return new Watchdog({
      clock,
      logger,
      journal: this.flights,
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

  async #configChanged(signal: AbortSignal): Promise<() => PodUpdate | undefined> {
    await this.config.someChanged(signal);
    return () => this.config.takeUpdate();
  }

  #makeLoop(queue: WorkQueue<PodUid>): SyncLoop {
    const { clock, random, logger } = this.#deps;
    const silent = { next: () => new Promise<undefined>(() => {}) };
    return new SyncLoop({
      clock,
      logger,
      pause: new Backoff(loopPause, random),
      problems: () => this.problems(),
      inputs: {
        config: { next: (signal) => this.#configChanged(signal) },
        pleg: { next: (signal) => this.pleg.nextEvent(signal) },
        sync: ticker(clock, syncTickMs),
        housekeeping: this.#housekeeping,
        probes: this.probes,
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
        nodeIps: () => this.#settings.nodeIps,
        queue,
        rejected: (reason) => this.#observer.rejected(reason),
        earlier: this.#earlier,
        admit: (pod, { length: others }, standing) =>
          admitPod({
            standing,
            others,
            ...kernelProblems(pod, this.#settings),
            groupsProblem: groupsProblem(pod, this.runtimeState.abilities),
            maxPods: this.#settings.maxPods,
          }),
        deleteSurplus: (uid, containerId) =>
          this.#runtime.deleteSurplus(this.pleg.cache.get(uid), this.#surplus(uid, containerId)),
        cleanUp: (found, signal) => this.#housekeeping.cleanUp(found, signal),
        changed: () => this.#housekeeping.changed(),
        isPastDeadline: (pod) =>
          isPastDeadline(pod, this.statuses.getPodStatus(pod.metadata.uid), clock.now()),
      }),
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
