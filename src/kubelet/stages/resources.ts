import { join } from 'node:path';
import type { Container } from '../../kinds/index.ts';
import type { DeviceCapacity } from '../../node/index.ts';
import {
  initContainersOf,
  newestInstance,
  type ObservedPod,
  type Pod,
  type PodUid,
  podUid,
  qosClass,
} from '../../pods/index.ts';
import {
  type CgroupManager,
  DraDrivers,
  DraManager,
  draMetrics,
  type ExclusiveResources,
  type HintProvider,
  type NodeCgroups,
  NodeDevices,
  nodeCgroups,
  oomLoop,
  openCgroups,
  type PodResourceAllocator,
  PodResourcesServer,
} from '../../resources/index.ts';
import type { ContainerInputs } from '../../runtime/index.ts';
import type { BackgroundLoops } from '../background.ts';
import { openExclusiveResources } from './exclusive-resources.ts';
import { bootFile, type KubeletState } from './state.ts';

export type KubeletResources = Awaited<ReturnType<typeof createResources>>;

/**
 * Creates the managers of cgroups, devices, resource claims, and exclusive CPUs and memory. Throws
 * CGROUPS_UNUSABLE, ALLOCATION_CONFIG or MACHINE_TOPOLOGY.
 */
export async function createResources(state: KubeletState) {
  const { settings, deps } = state;
  const cgroupManager = await openCgroups(settings, deps);
  const providers: HintProvider[] = [];
  const exclusive = await openExclusiveResources(state, providers);
  const { upkeep, pods: podCgroups, limits: podLimits } = createCgroups(state, cgroupManager, exclusive);
  const claims = createClaims(state);
  const devices = createDevices(state, exclusive.numaNodes);
  if (devices !== undefined) providers.push(devices);
  /** Devices are allocated together with exclusive CPUs and memory if the node has these. */
  const allocator: PodResourceAllocator | undefined =
    settings.exclusiveResources === undefined ? devices : exclusive;
  const deviceStatus = (uid: PodUid, container: string) => devices?.statusOf(uid, container) ?? [];
  const managers: GrantManagers = { exclusive, claims, devices };
  return {
    podCgroups,
    podLimits,
    exclusive,
    claims,
    devices,
    allocator,
    deviceStatus: settings.isGateEnabled('ResourceHealthStatus') ? deviceStatus : undefined,
    /** The devices that device plugins offer. */
    amounts: (): DeviceCapacity => devices?.amounts() ?? { capacity: {}, allocatable: {}, removed: [] },
    grants: (pod: Pod, container: Container, signal: AbortSignal): Promise<ContainerGrants> =>
      containerGrants(managers, { pod, container }, signal),
    loops: resourceLoops(state, upkeep, managers),
    /** Creates the parent cgroups of pods and reads the checkpoints of allocations. */
    async open(signal: AbortSignal): Promise<void> {
      await Promise.all([
        upkeep.start(signal),
        claims?.manager.restore(),
        exclusive.restore(signal),
        devices?.open(),
      ]);
    },
    /** The number of pods with claims and devices. */
    held: () => ({ resourceClaims: claims?.manager.size ?? 0, devices: devices?.size ?? 0 }),
    async dispose(): Promise<void> {
      await devices?.[Symbol.asyncDispose]();
    },
    /**
     * Stops the cgroup manager. Called last, also when the kubelet did not start, because removing
     * a pod needs its cgroup.
     */
    disposeCgroups: () => upkeep[Symbol.dispose](),
  };
}

/** The managers of the resources that are allocated to single containers. */
interface GrantManagers {
  readonly exclusive: ExclusiveResources;
  readonly claims: ReturnType<typeof createClaims>;
  readonly devices: NodeDevices | undefined;
}

type ContainerGrants = NonNullable<ContainerInputs['grants']>;

/** The devices, claims, CPUs and memory allocated to a container. */
async function containerGrants(
  { exclusive, claims, devices }: GrantManagers,
  { pod, container }: { readonly pod: Pod; readonly container: Container },
  signal: AbortSignal,
): Promise<ContainerGrants> {
  const ofDevices = await devices?.grants(pod, container, signal);
  const claimed = claims?.manager.cdiDevices(pod, container) ?? [];
  return {
    ...ofDevices,
    cdiDevices: [...(ofDevices?.cdiDevices ?? []), ...claimed],
    ...exclusive.placementFor(pod, container.name),
  };
}

function resourceLoops(
  state: KubeletState,
  cgroups: NodeCgroups['upkeep'],
  managers: GrantManagers,
): BackgroundLoops['restartable'] {
  const { settings, deps, journal, node, pods, cache } = state;
  const { exclusive, claims, devices } = managers;
  const observed = (uid: PodUid) => cache.lastObserved(uid);
  return {
    cgroups,
    ...oomLoop(settings, deps, { node, journal, pods, bootFile, observed }),
    ...(claims && { 'resource claims': claims.manager }),
    ...(devices && { 'plugins for devices': devices }),
    ...podResourcesLoop(state, managers),
    ...exclusive.loops(),
  };
}

function createCgroups(
  { settings, deps, journal, node, facts }: KubeletState,
  cgroups: CgroupManager,
  exclusive: Pick<ExclusiveResources, 'hasExclusiveCpus'>,
): NodeCgroups {
  const { clock, logger, machine } = deps;
  return nodeCgroups(settings, cgroups, {
    clock,
    logger,
    journal,
    node,
    processes: machine.processes,
    activePods: (quality) => facts.activePods((pod) => qosClass(pod) === quality),
    hasExclusiveCpus: (pod) => exclusive.hasExclusiveCpus(pod),
  });
}

const mostClaimBytes = 16 * 2 ** 20;

/**
 * The manager of resource claims; undefined on a node without plugins or an API server with
 * resource claims.
 */
function createClaims({ settings: { rootDir }, deps, queries }: KubeletState) {
  const { clock, logger, metrics, machine, cluster } = deps;
  const { plugins: host, files } = machine;
  const fetchClaim = cluster?.resourceClaim;
  if (host === undefined || fetchClaim === undefined) return undefined;
  const path = join(rootDir, 'dra_manager_state');
  const observer = draMetrics(metrics, () => manager.inUse);
  const drivers = new DraDrivers({ open: (socket) => host.open(socket), clock, observer });
  const manager: DraManager = new DraManager({
    drivers,
    fetchClaim,
    file: {
      read: async () => (await files.readEnd(path, mostClaimBytes))?.toString('utf8'),
      write: (text) => files.replace(path, text, { mode: 0o600 }),
    },
    mayRun: (uid) => queries.couldHaveRunningContainers(podUid(uid)),
    clock,
    logger,
    observer,
  });
  return { drivers, manager };
}

/** The device manager; undefined on a machine without device plugins. */
function createDevices(
  { settings: { rootDir }, deps, facts, config, queries, cache }: KubeletState,
  numaNodes: readonly number[] | undefined,
): NodeDevices | undefined {
  const { machine, cluster } = deps;
  if (machine.devices === undefined) return undefined;
  const runs = (uid: PodUid) =>
    cache.lastObserved(uid)?.containers.some(({ state }) => state === 'running') === true;
  return new NodeDevices({
    ...deps,
    rootDir,
    numaNodes,
    host: machine.devices,
    files: machine.files,
    mayUse: (uid) => {
      const pod = facts.desired(uid);
      if (pod !== undefined && facts.isActive(pod)) return true;
      // A pod that no source has may still have running containers, which use its devices.
      const isOrphan = pod === undefined && queries.couldHaveRunningContainers(uid);
      return !config.allReady() || runs(uid) || isOrphan;
    },
    isTerminating: (uid) =>
      facts.isTerminationRequested(uid) || (config.allReady() && facts.desired(uid) === undefined),
    isRunningOrFinished: (pod, { name }) => isServed(pod, name, cache.lastObserved(pod.metadata.uid)),
    changed: () => cluster?.nodeChanged(),
  });
}

/**
 * Whether the container runs, or is an init container that has succeeded and does not run again
 * while the sandbox is ready.
 */
function isServed(pod: Pod, container: string, observed: ObservedPod | undefined): boolean {
  if (observed?.sandboxes.some(({ state }) => state === 'ready') !== true) return false;
  const instance = newestInstance(observed, container);
  if (instance?.state === 'running') return true;
  const isInit = initContainersOf(pod).some(({ name }) => name === container);
  return isInit && instance?.state === 'exited' && instance.exitCode === 0;
}

function podResourcesLoop(
  { settings: { rootDir }, deps, facts, pods }: KubeletState,
  { exclusive, claims, devices }: GrantManagers,
): BackgroundLoops['restartable'] {
  const { devices: host } = deps.machine;
  if (host === undefined) return {};
  const known = {
    active: () => facts.activePods(),
    all: () => pods.getPods(),
    find: (namespace: string, name: string) => pods.getPodByName(namespace, name),
  };
  const given = () => ({
    devices: devices?.given(),
    claims: claims?.manager.allocated(),
    ...exclusive.allocated(),
  });
  return { 'resources of pods': new PodResourcesServer({ ...deps, rootDir, host, pods: known, given }) };
}
