import { posix } from 'node:path';
import { podsDirOf } from '../../checkpoints/index.ts';
import { describeError, randomHex } from '../../lib/index.ts';
import {
  Pleg,
  type PodCache,
  plegMetrics,
  proofContainerId,
  RunningPods,
  runtimeEvents,
} from '../../pleg/index.ts';
import { networkProber, PodProbes } from '../../probes/index.ts';
import { allocatableOf, checkStreamUrl, kubepodsPath } from '../../resources/index.ts';
import {
  AnnouncedExits,
  ContainerLogManager,
  CrashBackoff,
  checkRuntime,
  createImageGc,
  expandProbeCommand,
  GarbageCollector,
  type GcScope,
  handlersAsClasses,
  hookMetrics,
  ImageAccess,
  ImageCollector,
  idsPerBlock,
  LifecycleHooks,
  LogFollowers,
  type LoggingContainer,
  NodePlanner,
  type NodePlannerSettings,
  parseCpuTimes,
  podUsers,
  RuntimeManager,
  type RuntimeWatch,
  resizeDurations,
  runtimeHandlerOf,
  SandboxLimiter,
  type SubPath,
  startMetrics,
  UserNamespaces,
  watchRuntime,
  withHints,
} from '../../runtime/index.ts';
import type { StreamingHost } from '../../server/index.ts';
import { Statistics } from '../../stats/statistics.ts';
import type { BackgroundLoops } from '../background.ts';
import type { KubeletSettings } from '../settings.ts';
import type { KubeletResources } from './resources.ts';
import type { KubeletState } from './state.ts';
import type { KubeletVolumes } from './volumes.ts';

export type KubeletRuntime = ReturnType<typeof createRuntime>;

/**
 * The parts that use the container runtime: starting, stopping, observing and probing pods, and
 * garbage collection. `runtimeName` is the name the runtime reports, the scheme of container IDs.
 */
export function createRuntime(
  state: KubeletState,
  resources: KubeletResources,
  volumes: KubeletVolumes,
  runtimeName: string,
) {
  const { settings, deps, journal, node, pods, checkpoints } = state;
  const images = new ImageAccess(settings, { ...deps, journal });
  const imageGc = createImageGc(settings, deps, { node, leases: images.leases });
  const users = createUsers(state);
  const crashBackoff = createCrashBackoff(state);
  const runtime = createPodRuntime(state, resources, { volumes, images, users, crashBackoff, runtimeName });
  const { pleg, announcedExits } = createPleg(state, runtime);
  const running = new RunningPods(deps.clock, runtime);
  const probes = createProbes(state, runtime);
  const garbage = createGarbageCollector(state, images, runtime);
  const statistics = createStatistics(state, resources, volumes);
  const watch = runtimeWatchOf(state);
  const logFollowers = new LogFollowers();
  return {
    runtime,
    pleg,
    running,
    probes,
    images,
    imageGc,
    users,
    crashBackoff,
    garbage,
    statistics,
    logFollowers,
    streams: streamingHost(runtime, pods),
    checkRuntime: (signal: AbortSignal): Promise<void> => checkRuntime(watch, signal),
    loops: runtimeLoops(state, watch, { garbage, imageGc, logFollowers }),
    async open(): Promise<void> {
      await Promise.all([users.restore(), images.open()]);
    },
    /** Restores the crash back-off of containers from the checkpoints, once these are read. */
    restore: () => crashBackoff.restore(checkpoints.backoffs(), deps.clock.now()),
    /**
     * Stops the runtime parts; called after the workers have stopped, because workers start and
     * stop containers until then.
     */
    async dispose(): Promise<void> {
      announcedExits[Symbol.dispose]();
      statistics[Symbol.dispose]();
      await runtime[Symbol.asyncDispose]();
    },
  };
}

function createUsers({ settings, deps: { logger, machine } }: KubeletState): UserNamespaces {
  return new UserNamespaces({
    logger,
    files: machine.files,
    podsDir: podsDirOf(settings.rootDir),
    idsPerPod: settings.idsPerPod ?? idsPerBlock,
    ids: settings.userIds,
    foreignIds: machine.foreignIds,
  });
}

function createCrashBackoff({ settings, deps, checkpoints }: KubeletState): CrashBackoff {
  return new CrashBackoff({
    random: deps.random,
    maxMs: settings.maxRestartWaitMs,
    persist: (uid, entries) => checkpoints.recordBackoff(uid, entries),
  });
}

function createAnnouncedExits({ deps, cache, facts }: KubeletState, runtime: RuntimeManager): AnnouncedExits {
  return new AnnouncedExits({
    logger: deps.logger,
    observed: (uid) => cache.get(uid),
    findPod: (uid) => facts.podOfWorker(uid),
    isTerminationRequested: (uid) => facts.isTerminationRequested(uid),
    prepare: (request, mayMake, signal) => runtime.prepareRestart(request, mayMake, signal),
  });
}

/** Creates the PLEG, and the handler of the container exits that runtime events announce. */
function createPleg(
  state: KubeletState,
  runtime: RuntimeManager,
): { readonly pleg: Pleg; readonly announcedExits: AnnouncedExits } {
  const { deps, cache, workers, runtimeHints } = state;
  const { clock, random, logger, cri, metrics } = deps;
  // Publishes a test event to containerd: receiving it proves that the runtime delivers events.
  const prove = (signal: AbortSignal) =>
    cri.publishContainerdEvent(proofContainerId(randomHex(random, 8)), signal);
  const announcedExits = createAnnouncedExits(state, runtime);
  const pleg = new Pleg({
    clock,
    random,
    log: logger,
    cache,
    runtime,
    events: runtimeEvents(cri, prove),
    metrics: withHints(plegMetrics(metrics), () => runtimeHints.raise()),
    exitAnnounced: (uid, containerId) => announcedExits.announced(uid, containerId),
    isTerminating: (uid) => workers.isTerminationRequested(uid),
  });
  return { pleg, announcedExits };
}

function createProbes({ deps, journal, statuses, workers }: KubeletState, runner: RuntimeManager): PodProbes {
  const { clock, random, machine } = deps;
  return new PodProbes({
    ...deps,
    journal,
    prober: machine.prober ?? networkProber({ clock, random, dialHttp: machine.dialHttp }),
    runner,
    statuses,
    isTerminating: (uid) => workers.isTerminationRequested(uid),
    expand: expandProbeCommand,
  });
}

function createGarbageCollector(
  { deps: { clock }, node }: KubeletState,
  images: ImageAccess,
  runtime: RuntimeManager,
): GarbageCollector {
  const collect = async (scope: GcScope, signal: AbortSignal) => {
    await images.prune(signal);
    await runtime.garbageCollect(scope, signal);
  };
  return new GarbageCollector({ clock, node, collect });
}

function createStatistics(
  { settings, deps, cache, facts }: KubeletState,
  { podCgroups }: KubeletResources,
  { space, volumes }: KubeletVolumes,
): Statistics {
  const { cgroupsPerQos, cgroupRoot, cgroupDriver } = settings;
  return new Statistics(settings, deps, {
    space,
    observed: () => cache.all(),
    known: (uid) => facts.podWithStatus(uid),
    cgroupOf: (pod) => podCgroups.cgroupParent(pod),
    podsCgroup: cgroupsPerQos ? kubepodsPath(cgroupRoot, cgroupDriver) : undefined,
    directoriesOf: (pod) => volumes.directoriesOf(pod),
  });
}

/** The watch of the runtime, which notes in the node's journal whether the runtime responds. */
function runtimeWatchOf({ deps, node, runtimeState }: KubeletState): Omit<RuntimeWatch, 'hints'> {
  const { cri, clock } = deps;
  const looked = (error: unknown) => {
    if (error === undefined) node.recovered('runtime', 'The container runtime answers again');
    else node.noteProblem('runtime', `The container runtime does not answer: ${describeError(error)}`);
    deps.runtimeChecked?.(error);
  };
  return { cri, clock, state: runtimeState, looked };
}

function streamingHost({ streams }: RuntimeManager, pods: KubeletState['pods']): StreamingHost {
  return {
    getPodByName: (namespace, name) => pods.getPodByName(namespace, name),
    translatePodUid: (uid) => pods.translatePodUid(uid),
    exec: async (...request) => checkStreamUrl(await streams.exec(...request), pods),
    attach: async (...request) => checkStreamUrl(await streams.attach(...request), pods),
    portForward: async (...request) => checkStreamUrl(await streams.portForward(...request), pods),
    run: (...request) => streams.run(...request),
  };
}

interface CollectorParts {
  readonly garbage: GarbageCollector;
  readonly imageGc: ReturnType<typeof createImageGc>;
  readonly logFollowers: LogFollowers;
}

function runtimeLoops(
  state: KubeletState,
  watch: Omit<RuntimeWatch, 'hints'>,
  { garbage, imageGc, logFollowers }: CollectorParts,
): BackgroundLoops['restartable'] {
  const { deps, node, runtimeHints: hints } = state;
  return {
    'runtime watch': { run: (signal) => watchRuntime({ ...watch, hints }, signal) },
    'garbage collector': garbage,
    ...(imageGc && { 'image garbage': new ImageCollector({ ...deps, node, manager: imageGc }) }),
    ...logLoops(state, logFollowers),
  };
}

interface PodRuntimeParts {
  readonly volumes: KubeletVolumes;
  readonly images: ImageAccess;
  readonly users: UserNamespaces;
  readonly crashBackoff: CrashBackoff;
  readonly runtimeName: string;
}

function createPodRuntime(
  state: KubeletState,
  resources: KubeletResources,
  parts: PodRuntimeParts,
): RuntimeManager {
  const { settings, deps, journal, checkpoints, allocated, queries, restored, nodeIps } = state;
  const { clock, machine, metrics } = deps;
  const { images, crashBackoff, runtimeName } = parts;
  const { podLogsDir, logLinksDir, pulls, gc } = settings;
  const runtime: RuntimeManager = new RuntimeManager({
    ...deps,
    journal,
    files: machine.files,
    planner: createPlanner(state, resources, parts),
    sandboxLimiter: new SandboxLimiter({
      clock,
      processors: Math.ceil(settings.capacity.milliCpu / 1_000),
      cpuTimes: async () => parseCpuTimes(await machine.readFile('/proc/stat')),
    }),
    crashBackoff,
    hooks: new LifecycleHooks({
      ...deps,
      journal,
      dial: machine.dialHttp,
      limitMs: settings.hookLimitMs,
      observer: hookMetrics(metrics),
      podIps: async ({ metadata, spec }, signal) =>
        spec.hostNetwork === true ? nodeIps() : await runtime.podIps(metadata.uid, signal),
    }),
    hookCheckpoint: checkpoints.hooks,
    credentials: images.credentials,
    pullRecords: images.records,
    imageLeases: images.leases,
    startObserver: startMetrics(metrics),
    startCheckpoint: checkpoints.starts,
    beforeStop: (uid) => checkpoints.refreshDeadline(uid),
    actuated: allocated.actuated,
    allocationPersisted: () => allocated.allocated.flushed(),
    podLimits: resources.podLimits,
    resizeObserver: resizeDurations(metrics),
    pods: {
      shouldPodContentBeRemoved: (uid) => queries.shouldPodContentBeRemoved(uid),
      shouldPodRuntimeBeRemoved: (uid) => queries.shouldPodRuntimeBeRemoved(uid),
      secondsLeft: (uid) => restored.secondsLeft(uid),
    },
    settings: { runtimeName, podLogsDir, logLinksDir, pulls, gc },
  });
  return runtime;
}

/** The maximum size of an environment file, because the kubelet reads it into memory. */
const longestVolumeFile = 1 << 20;

/**
 * Creates the planner for sandboxes and containers, from the pod spec and the settings of this
 * node.
 */
function createPlanner(
  { settings, deps, journal, node, nodeIps, facts, runtimeState }: KubeletState,
  { podCgroups, exclusive, grants }: KubeletResources,
  { volumes: { volumes, directories }, users }: PodRuntimeParts,
): NodePlanner {
  const { random, machine, cluster, cri } = deps;
  const { volumeParts } = machine;
  const classes = cluster?.runtimeClasses ?? handlersAsClasses(cri);
  const handlers = () => runtimeState.abilities.handlers;
  return new NodePlanner(plannerSettings(settings, directories.podsDir), {
    random,
    journal,
    nodeEvent: (event) => node.problem(event.reason, event),
    readNodeFile: (path) => machine.readFile(path),
    nodeIps,
    allocatable: () => allocatableOf(settings, cluster?.node()),
    cgroupParent: (pod) => podCgroups.cgroupParent(pod),
    runtimeHandler: (pod, signal) => runtimeHandlerOf(pod, classes, signal),
    supportsRecursiveReadOnly: (handler) => handlers().get(handler)?.recursiveReadOnly ?? false,
    users: (pod, handler) => podUsers(pod, handler, { handlers, namespaces: users }),
    objects: cluster?.objects,
    services: cluster?.services ?? (() => ({ state: 'none' })),
    volumes: (uid) => {
      const pod = facts.podOfWorkerOrSource(uid);
      return pod === undefined ? new Map() : volumes.of(pod);
    },
    volumeGroups: (uid) => volumes.groupsOf(uid),
    grants,
    podGrants: (pod) => ({ exclusiveCpus: exclusive.hasExclusiveCpus(pod) }),
    subPath: async (podDir, part, signal) => {
      const target = subPathTarget(podDir, part);
      await volumeParts.bind(part.volumePath, part.path, target, signal);
      return target;
    },
    volumeFile: (volume, path) => volumeParts.readText(volume, path, longestVolumeFile),
  });
}

function plannerSettings(settings: KubeletSettings, podsDir: string): NodePlannerSettings {
  const { node, rootDir, podLogsDir, clusterDns, clusterDomain, resolvConf } = settings;
  return {
    node,
    podLogsDir,
    podsDir,
    seccomp: { profileRoot: posix.join(rootDir, 'seccomp'), fallback: settings.seccompFallback },
    selinux: settings.selinux === undefined ? 'disabled' : 'enabled',
    thermalThrottlePaths: settings.thermalThrottlePaths ?? [],
    clusterDns,
    clusterDomain,
    resolvConf,
    stopSignals: settings.isGateEnabled('ContainerStopSignals') ? 'honoured' : 'ignored',
  };
}

/**
 * The mount point of a volume subPath. The Go kubelet uses the same path, so that each kubelet
 * cleans up after the other.
 */
function subPathTarget(podDir: string, { specName, containerName, index }: SubPath): string {
  return posix.join(podDir, 'volume-subpaths', specName, containerName, `${index}`);
}

/** The loop that rotates container logs, if rotation is configured. */
function logLoops(
  { settings: { containerLogs: policy, podLogsDir }, deps, cache }: KubeletState,
  followers: LogFollowers,
): BackgroundLoops['restartable'] {
  const { clock, logger, cri, machine } = deps;
  const { logFiles: files } = machine;
  if (policy === undefined || files === undefined) return {};
  const containers = () => loggingContainers(cache);
  const parts = { cri, clock, logger, files, policy, podLogsDir, containers, followers };
  return { 'container logs': new ContainerLogManager(parts) };
}

function* loggingContainers(cache: PodCache): Iterable<LoggingContainer> {
  for (const pod of cache.all()) {
    for (const { id, state, logPath } of pod.containers) {
      if (state === 'running') yield { id, logPath, state };
      else if (state === 'exited') yield { id, logPath, state: 'ended' };
    }
  }
}
