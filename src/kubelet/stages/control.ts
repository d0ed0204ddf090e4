import type { Container } from '../../kinds/index.ts';
import { Backoff } from '../../lib/index.ts';
import { isPastDeadline, isTerminalPhase, type Pod } from '../../pods/index.ts';
import {
  AllocationManager,
  admissionMetrics,
  EvictionManager,
  type EvictionStats,
  evictedStatus,
  evictionMetrics,
  infeasibility,
  KernelMemoryAlarm,
  kubepodsPath,
  PodAdmission,
  PodResizes,
  ProvidedStats,
  preemptedEvent,
  preemptedStatus,
  resizeMetrics,
} from '../../resources/index.ts';
import { decideSandbox, mayUseSwap, type Surplus } from '../../runtime/index.ts';
import { endedContainers } from '../../status/index.ts';
import { PodWorkers, Watchdog } from '../../workers/index.ts';
import { admissionFacts, configuredNode } from '../admission-facts.ts';
import type { BackgroundLoops } from '../background.ts';
import { Housekeeping } from '../housekeeping.ts';
import { ticker } from '../input-mux.ts';
import type { ClusterPods } from '../kubelet-deps.ts';
import { startedAfterMs } from '../metrics.ts';
import { openNodeShutdown } from '../node-shutdown.ts';
import { PodHandlers } from '../pod-handlers.ts';
import { KubeletPodSyncer } from '../pod-syncer.ts';
import { SyncLoop } from '../sync-loop.ts';
import type { KubeletResources } from './resources.ts';
import type { KubeletRuntime } from './runtime.ts';
import type { KubeletState } from './state.ts';
import type { KubeletVolumes } from './volumes.ts';

/** The results of the earlier stages of building the kubelet, which the control stage uses. */
export interface KubeletParts {
  readonly state: KubeletState;
  /** The pods of the API; undefined for a standalone node. */
  readonly clusterPods: ClusterPods | undefined;
  readonly resources: KubeletResources;
  readonly volumes: KubeletVolumes;
  readonly runtime: KubeletRuntime;
}

export type KubeletControl = Awaited<ReturnType<typeof createControl>>;

/**
 * The parts that decide about pods: the sync loop with its handlers, the pod workers, admission and
 * eviction.
 */
export async function createControl(parts: KubeletParts) {
  const { state, resources, runtime } = parts;
  const { control, pendingAdmissions } = state;
  const eviction = createEviction(parts);
  const pressures = () => eviction?.conditions ?? [];
  const shutdown = await openNodeShutdown(state, parts.clusterPods);
  const admission = createAdmission(parts, {
    pressures,
    isShuttingDown: () => shutdown?.isShuttingDown ?? false,
  });
  const allocation = createAllocation(state, admission);
  const workers = createWorkers(parts, allocation);
  control.onUpdate((options) => workers.updatePod(options));
  const housekeeping = createHousekeeping(parts, workers, allocation);
  const loop = createSyncLoop(parts, { admission, allocation, workers, housekeeping });
  followStatuses(state, { admission, allocation });
  return {
    workers,
    loop,
    shutdown,
    pressures,
    problems: () => runtimeProblems(parts),
    loops: {
      watchdog: createWatchdog(state, workers),
      ...(shutdown && { 'node shutdown': shutdown }),
      resizes: allocation,
      ...(eviction && { 'eviction manager': eviction }),
    } satisfies BackgroundLoops['restartable'],
    held: () => ({
      pendingResizes: allocation.size,
      orphanDirectories: housekeeping.orphanDirectories,
    }),
    /** Aborts pending admissions and then syncs; pods keep running. */
    async dispose(): Promise<void> {
      await pendingAdmissions[Symbol.asyncDispose]();
      await runtime.probes[Symbol.asyncDispose]();
      await workers[Symbol.asyncDispose]();
      await resources.dispose();
      await housekeeping[Symbol.asyncDispose]();
    },
  };
}

function createWatchdog({ deps, journal, pods, observer }: KubeletState, workers: PodWorkers): Watchdog {
  const { clock, logger } = deps;
  return new Watchdog({
    clock,
    logger,
    journal,
    desiredPods: () => pods.getPods(),
    workers,
    observe: (counts) => observer.stuck(counts),
  });
}

/** The reasons why no pod can be synced now. */
function runtimeProblems({ state: { runtimeState }, runtime: { pleg } }: KubeletParts): readonly string[] {
  const problem = pleg.problem();
  return [...runtimeState.problems().runtime, ...(problem === undefined ? [] : [problem])];
}

/**
 * Creates the eviction manager; undefined when the configuration has no thresholds, or the machine
 * reports no usage.
 */
function createEviction({
  state,
  runtime: { garbage, imageGc, statistics },
}: KubeletParts): EvictionManager | undefined {
  const { settings, deps, journal, node, control, queries, facts, pendingAdmissions } = state;
  const { clock, logger, metrics, machine, cluster } = deps;
  const provided = machine.stats && new ProvidedStats({ clock, provider: () => statistics.provider() });
  const stats: EvictionStats | undefined = machine.evictionStats ?? provided;
  if (settings.eviction === undefined || stats === undefined) return undefined;
  return new EvictionManager({
    clock,
    logger,
    settings: settings.eviction,
    stats,
    memoryNotifier: memoryAlarmOf(state),
    // A pod that is not admitted yet uses no resources, so it is not evicted.
    activePods: () => facts.activePods(({ metadata: { uid } }) => !pendingAdmissions.has(uid)),
    kill: async (pod, { graceSeconds, decision }, signal) => {
      const statusFn = (status: typeof pod.status) => evictedStatus(status, decision, pod);
      const options = { why: 'eviction', graceOverrideSeconds: graceSeconds, statusFn } as const;
      await control.killPodNow(pod, options, signal);
    },
    isCleanedUp: (uid) => queries.shouldPodBeFinished(uid),
    reclaim: {
      deleteAllUnusedContainers: (signal) => garbage.collectNow('terminated-pods-too', signal),
      deleteUnusedImages: async (signal) => await imageGc?.deleteUnusedImages(signal),
    },
    collectGarbage: (signal) => garbage.collectNow('deleted-pods', signal),
    podEvent: (pod, event) => journal.event(pod, event),
    nodeEvent: (event) => node.event(event),
    observer: evictionMetrics(metrics),
    conditionsChanged: () => cluster?.nodeChanged(),
  });
}

/**
 * Returns the kernel notifications for low memory; undefined unless they are configured and the
 * machine has them.
 */
function memoryAlarmOf({ settings, deps }: KubeletState): KernelMemoryAlarm | undefined {
  const { eviction, cgroupRoot, cgroupDriver } = settings;
  const { cgroups, watchMemory } = deps.machine;
  if (eviction?.memoryNotification !== 'kernel' || watchMemory === undefined) return undefined;
  const podsCgroup = kubepodsPath(cgroupRoot, cgroupDriver);
  return new KernelMemoryAlarm({ logger: deps.logger, cgroups, watch: watchMemory, podsCgroup });
}

function createAdmission(
  { state, resources: { devices, exclusive, allocator } }: KubeletParts,
  node: { readonly pressures: () => readonly string[]; readonly isShuttingDown: () => boolean },
): PodAdmission {
  const { settings, deps, journal, control, checkpoints, facts, allocated, restored, runtimeState } = state;
  const { clock, logger, metrics, cluster } = deps;
  const pending = state.pendingAdmissions;
  return new PodAdmission({
    clock,
    logger,
    journal,
    pending,
    facts: admissionFacts(settings, {
      ...node,
      pending,
      standing: (pod) => restored.standing(pod),
      active: () => facts.activePods().map((pod) => allocated.counted(pod)),
      isTerminating: (uid) => facts.isTerminationRequested(uid),
      node: () => cluster?.node(),
      nodeFor: (pod, own) => devices?.nodeFor(pod, own) ?? own,
      abilities: () => runtimeState.abilities,
    }),
    fetchNode: cluster?.fetchNode ?? (async () => configuredNode(settings)),
    preempt: async (victim, signal) => {
      journal.event(victim, preemptedEvent);
      await control.killPodNow(victim, { why: 'eviction', statusFn: preemptedStatus }, signal);
    },
    wasAdmitted: (uid) => checkpoints.wasAdmitted(uid),
    allocator,
    adopt: (pod) => exclusive.adopt(pod),
    underPressure: settings.underPressure,
    observer: admissionMetrics(metrics),
  });
}

function createAllocation(state: KubeletState, admission: PodAdmission): AllocationManager {
  const { settings, deps, journal, pods, config, facts, allocated, control } = state;
  const { node, isGateEnabled, exclusive } = settings;
  const { clock, logger, metrics } = deps;
  const limits = {
    mayUseSwap: (pod: Pod, container: Container) => mayUseSwap(pod, container, node),
    exclusive: {
      cpu: exclusive?.cpu === true && !isGateEnabled('InPlacePodVerticalScalingExclusiveCPUs'),
      memory: exclusive?.memory === true && !isGateEnabled('InPlacePodVerticalScalingExclusiveMemory'),
    },
    podLevel: isGateEnabled('InPlacePodLevelResourcesVerticalScaling'),
  };
  return new AllocationManager({
    clock,
    logger,
    journal,
    allocatedPods: allocated,
    findPod: (uid) => (facts.hasEnded(uid) ? undefined : facts.desired(uid)),
    areSourcesReady: () => config.allReady(),
    checkAdmission: (pod) => admission.resizeRejection(pod),
    syncPod: (pod) => {
      const { mirrorPod } = pods.getPodAndMirrorPod(pod);
      control.updatePod({ updateType: 'update', pod, mirrorPod, startStamp: clock.stamp() });
    },
    infeasibility: (pod, current) => infeasibility(pod, current, limits),
    observer: resizeMetrics(metrics, () => allocated.conditions.counts()),
  });
}

function createWorkers(parts: KubeletParts, allocation: AllocationManager): PodWorkers {
  const { state, runtime } = parts;
  const { settings, deps, journal, allocated } = state;
  return new PodWorkers({
    ...deps,
    log: deps.logger,
    journal,
    syncer: createSyncer(parts, allocation),
    state: state.workers,
    queries: state.queries,
    observed: state.cache,
    requestRelist: (uid) => runtime.pleg.requestRelist(uid),
    withAllocation: (pod) => allocated.withAllocation(pod),
    queue: state.queue,
    areSourcesReadyFor: (uid) => state.restored.areSourcesReadyFor(uid),
    syncFrequencyMs: settings.syncFrequencyMs,
    metrics: state.workerObserver,
  });
}

function createSyncer(
  { state, resources, volumes: { directories, volumes }, runtime }: KubeletParts,
  allocation: AllocationManager,
): KubeletPodSyncer {
  const { deps, journal, statuses, checkpoints, facts, allocated, runtimeState, cache } = state;
  const { pleg } = runtime;
  return new KubeletPodSyncer({
    ...deps,
    journal,
    runtime: runtime.runtime,
    statuses,
    cgroups: resources.podCgroups,
    directories,
    volumes,
    users: runtime.users,
    checkpoints,
    probes: runtime.probes,
    isTerminationRequested: (uid) => facts.isTerminationRequested(uid),
    isDesired: (uid) => facts.desired(uid) !== undefined,
    orphanWithNameOf: ({ metadata: { uid, name, namespace } }) =>
      pleg.runningUnder(name, namespace).find((other) => other !== uid && facts.desired(other) === undefined),
    networkProblems: () => runtimeState.problems().network,
    nodeIps: state.nodeIps,
    rejected: (reason) => state.observer.rejected(reason),
    claims: resources.claims?.manager,
    deviceStatus: resources.deviceStatus,
    cluster: deps.cluster,
    lastObserved: (uid) => cache.lastObserved(uid),
    resizes: new PodResizes({
      manager: allocation,
      conditions: allocated.conditions,
      runtime: runtime.runtime,
      reinspect: (uid) => pleg.requestReinspect(uid),
    }),
    supportsRecursiveReadOnly: (handler) =>
      runtimeState.abilities.handlers.get(handler)?.recursiveReadOnly === true,
    hasUsableSandbox: (pod, observed) => decideSandbox(pod, observed).kind === 'keep',
  });
}

function createHousekeeping(
  { state, resources: { podCgroups, devices }, volumes: { directories }, runtime }: KubeletParts,
  workers: PodWorkers,
  allocation: AllocationManager,
): Housekeeping {
  const { deps, journal, node, observer, pods, statuses, checkpoints, restored, facts } = state;
  const { cluster, clock } = deps;
  const { pleg, running, users, probes, garbage, crashBackoff } = runtime;
  return new Housekeeping({
    ...deps,
    node,
    observer,
    journal,
    pods,
    workers,
    statuses,
    cgroups: podCgroups,
    podDirectories: directories,
    runningPods: (signal) => running.refresh(signal),
    receivesRuntimeEvents: () => pleg.eventTrust === 'trusted',
    isActive: (pod) => facts.isActive(pod),
    isAdmissionPending: (uid) => state.pendingAdmissions.has(uid),
    restored,
    checkpoints,
    users,
    allocation,
    probes,
    forgetPod: (uid) => {
      runtime.runtime.forgetPod(uid);
      cluster?.objects.unregister(uid);
      cluster?.tokens.forgetPod(uid);
    },
    collectBackoffs: () => {
      crashBackoff.collect(clock.now());
      devices?.free();
    },
    collectGarbage: () => garbage.collectSoon(),
  });
}

const tickMs = 1_000;
/** The back-off of the sync loop while the runtime is not ready. */
const loopBackoff = { baseMs: 100, maxMs: 5_000 };
const silent = { next: () => new Promise<undefined>(() => {}) };

interface LoopParts {
  readonly admission: PodAdmission;
  readonly allocation: AllocationManager;
  readonly workers: PodWorkers;
  readonly housekeeping: Housekeeping;
}

function createSyncLoop(parts: KubeletParts, loopParts: LoopParts): SyncLoop {
  const { state, resources, runtime } = parts;
  const { config, deps } = state;
  const { clock, random, logger } = deps;
  const { pleg, probes } = runtime;
  const nextConfig = async (signal: AbortSignal) => {
    await config.changed(signal);
    return () => config.takeUpdate();
  };
  return new SyncLoop({
    clock,
    logger,
    backoff: new Backoff(loopBackoff, random),
    handler: createHandlers(parts, loopParts),
    problems: () => runtimeProblems(parts),
    inputs: {
      config: { next: nextConfig },
      pleg: { next: (signal) => pleg.nextEvent(signal) },
      sync: ticker(clock, tickMs),
      housekeeping: loopParts.housekeeping,
      probes,
      devices: resources.devices ?? silent,
    },
  });
}

function createHandlers(
  { state, clusterPods, runtime }: KubeletParts,
  { admission, allocation, workers, housekeeping }: LoopParts,
): PodHandlers {
  const { settings, deps, config, statuses, observer, queries, cache } = state;
  const { clock, logger } = deps;
  /**
   * The dead containers to remove after a container has exited: all dead containers of a pod that
   * is not desired; for a desired pod only the older instances.
   */
  const surplus = (uid: Parameters<typeof cache.get>[0], containerId: string): Surplus =>
    queries.shouldPodContentBeRemoved(uid)
      ? { kind: 'all' }
      : { kind: 'instances-of', containerId, keep: Math.max(settings.gc.maxPerContainer, 1) };
  return new PodHandlers({
    clock,
    logger,
    journal: state.journal,
    pods: state.pods,
    workers,
    sources: config,
    statuses,
    nodeIps: state.nodeIps,
    staticOrMirrorChanged: (name) => clusterPods?.staticOrMirrorChanged(name),
    queue: state.queue,
    rejected: (reason) => observer.rejected(reason),
    restored: state.restored,
    admission,
    pending: state.pendingAdmissions,
    allocation,
    allocated: state.allocated,
    deleteSurplus: (uid, containerId) =>
      runtime.runtime.deleteSurplus(cache.get(uid), surplus(uid, containerId)),
    cleanUp: (found, signal) => housekeeping.cleanUp(found, signal),
    changed: () => housekeeping.changed(),
    isPastDeadline: (pod) => isPastDeadline(pod, statuses.getPodStatus(pod.metadata.uid), clock.now()),
  });
}

/**
 * Handles a published status: persists it, counts it, and releases the resources of a terminated
 * pod.
 */
function followStatuses(
  { deps, statuses, observer, checkpoints }: KubeletState,
  { admission, allocation }: Pick<LoopParts, 'admission' | 'allocation'>,
): void {
  const countEnds = endedContainers(deps.metrics);
  statuses.onChange((change) => {
    countEnds(change);
    const ms = startedAfterMs(change, deps.clock.now());
    if (ms !== undefined) observer.podStarted(ms);
    void checkpoints.recordStatus(change.pod, change.after);
    if (!change.isFinished && !isTerminalPhase(change.after.phase)) return;
    allocation.podTerminated(change.uid);
    admission.resourcesReleased();
  });
}
