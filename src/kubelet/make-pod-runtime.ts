import type { PodJournal } from '../pods/index.ts';
import type { PodCgroups } from '../resources/index.ts';
import {
  type GcPods,
  type PodLimitsAccess,
  parseCpuTimes,
  RuntimeManager,
  resizeDurations,
  SandboxLimiter,
  startMetrics,
} from '../runtime/index.ts';
import type { ImageAccess } from './image-access.ts';
import type { KeptPods } from './kept-pods.ts';
import type { KubeletDeps } from './kubelet-deps.ts';
import type { NodeAllocation } from './make-allocation.ts';
import { makeHooks } from './make-hooks.ts';
import { makeNodePlanner, type NodePlannerParts } from './make-node-planner.ts';
import type { NodeJournal } from './node-journal.ts';
import type { PodFacts } from './pod-facts.ts';
import type { RuntimeAbilities } from './runtime-abilities.ts';
import type { KubeletSettings } from './settings.ts';

/** What of the kubelet the runtime's pods depend on. */
export interface PodRuntimeParts {
  /** As the runtime calls itself. */
  readonly runtimeName: string;
  readonly journal: PodJournal;
  readonly node: NodeJournal;
  readonly cgroups: PodCgroups;
  readonly podLimits: PodLimitsAccess | undefined;
  readonly allocation: Pick<NodeAllocation, 'allocated' | 'actuated'>;
  readonly kept: KeptPods;
  readonly images: Pick<ImageAccess, 'credentials' | 'records' | 'leases'>;
  readonly facts: Pick<PodFacts, 'known'>;
  readonly pods: GcPods;
  readonly abilities: () => RuntimeAbilities;
  readonly nodeIps: () => readonly string[];
  readonly grants?: NodePlannerParts['grants'];
  readonly podGrants?: NodePlannerParts['podGrants'];
}

/** The pods of this node's runtime. */
export function makePodRuntime(
  settings: KubeletSettings,
  deps: KubeletDeps,
  parts: PodRuntimeParts,
): RuntimeManager {
  const { runtimeName, journal, kept, images, pods, podLimits, allocation } = parts;
  const { clock, random, logger, cri, machine, metrics } = deps;
  const { podLogsDir, logLinksDir, pulls, gc } = settings;
  const runtime: RuntimeManager = new RuntimeManager({
    cri,
    clock,
    random,
    logger,
    journal,
    files: machine.files,
    planner: plannerOf(settings, deps, parts),
    sandboxLimiter: new SandboxLimiter({
      clock,
      processors: Math.ceil(settings.capacity.milliCpu / 1_000),
      cpuTimes: async () => parseCpuTimes(await machine.readFile('/proc/stat')),
    }),
    crashBackoff: kept.crashBackoff,
    hooks: makeHooks(settings, {
      ...deps,
      journal,
      nodeIps: parts.nodeIps,
      podIps: (uid, signal) => runtime.podIps(uid, signal),
    }),
    hookCheckpoint: kept.notes.hooks,
    credentials: images.credentials,
    pullRecords: images.records,
    imageLeases: images.leases,
    startObserver: startMetrics(metrics),
    startCheckpoint: kept.notes.starts,
    beforeStop: (uid) => kept.notes.keepDeadline(uid),
    actuated: allocation.actuated,
    allocationPersisted: () => allocation.allocated.settled(),
    podLimits,
    resizeObserver: resizeDurations(metrics),
    pods,
    settings: { runtimeName, podLogsDir, logLinksDir, pulls, gc },
  });
  return runtime;
}

function plannerOf(settings: KubeletSettings, deps: KubeletDeps, parts: PodRuntimeParts) {
  const { journal, node, cgroups, kept, facts, abilities, nodeIps } = parts;
  const { directories, users, volumes } = kept;
  return makeNodePlanner(settings, {
    ...deps,
    journal,
    node,
    podsDir: directories.podsDir,
    cgroups,
    abilities,
    nodeIps,
    grants: parts.grants,
    podGrants: parts.podGrants,
    users,
    volumeGroupsOf: (uid) => volumes.groupsOf(uid),
    volumesOf: (uid) => {
      const pod = facts.known(uid);
      return pod === undefined ? new Map() : volumes.of(pod);
    },
  });
}
