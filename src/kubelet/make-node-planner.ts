import { posix } from 'node:path';
import type { Random } from '../lib/index.ts';
import type { PodJournal, PodUid } from '../pods/index.ts';
import type { PodCgroups } from '../resources/index.ts';
import {
  handlersAsClasses,
  NodePlanner,
  type NodePlannerDeps,
  podUsers,
  runtimeHandlerOf,
  type SubPath,
  type UserNamespaces,
} from '../runtime/index.ts';
import type { VolumeManager } from '../volumes/index.ts';
import { allocatableOf } from './allocatable.ts';
import type { KubeletDeps, NodeMachine } from './kubelet-deps.ts';
import type { NodeJournal } from './node-journal.ts';
import type { RuntimeAbilities } from './runtime-abilities.ts';
import type { KubeletSettings } from './settings.ts';

export interface NodePlannerParts {
  readonly random: Random;
  readonly machine: Pick<NodeMachine, 'readFile' | 'volumeParts'>;
  readonly cri: Pick<KubeletDeps['cri'], 'status'>;
  readonly cluster?: KubeletDeps['cluster'];
  readonly nodeIps: () => readonly string[];
  readonly journal: PodJournal;
  readonly node: NodeJournal;
  readonly podsDir: string;
  readonly cgroups: PodCgroups;
  readonly abilities: () => RuntimeAbilities;
  readonly users: UserNamespaces;
  readonly volumesOf: (uid: PodUid) => ReturnType<VolumeManager['of']>;
  readonly volumeGroupsOf: VolumeManager['groupsOf'];
  readonly grants?: NodePlannerDeps['grants'];
  readonly podGrants?: NodePlannerDeps['podGrants'];
}

/** The planner of this node: what pods may ask of it, and where their parts come from. */
export function makeNodePlanner(settings: KubeletSettings, parts: NodePlannerParts): NodePlanner {
  const { random, machine, journal, cgroups, podsDir, volumesOf, abilities, cluster, nodeIps } = parts;
  const { node, podLogsDir, clusterDns, clusterDomain, resolvConf } = settings;
  const { volumeParts } = machine;
  const classes = cluster?.runtimeClasses ?? handlersAsClasses(parts.cri);
  const handlers = () => abilities().handlers;
  return new NodePlanner(
    {
      node,
      podLogsDir,
      podsDir,
      seccomp: { profileRoot: posix.join(settings.rootDir, 'seccomp'), fallback: settings.seccompFallback },
      selinux: settings.selinux === undefined ? 'disabled' : 'enabled',
      thermalThrottlePaths: settings.thermalThrottlePaths ?? [],
      clusterDns,
      clusterDomain,
      resolvConf,
      stopSignals: settings.isGateEnabled('ContainerStopSignals') ? 'honoured' : 'ignored',
    },
    {
      random,
      journal,
      nodeEvent: (event) => parts.node.trouble(event.reason, event),
      readNodeFile: (path) => machine.readFile(path),
      nodeIps,
      allocatable: () => allocatableOf(settings, cluster?.node()),
      cgroupParent: (pod) => cgroups.cgroupParent(pod),
      runtimeHandler: (pod, signal) => runtimeHandlerOf(pod, classes, signal),
      supportsRecursiveReadOnly: (handler) => handlers().get(handler)?.recursiveReadOnly ?? false,
      users: (pod, handler) => podUsers(pod, handler, { handlers, namespaces: parts.users }),
      objects: cluster?.objects,
      services: cluster?.services ?? (() => ({ state: 'none' })),
      volumes: volumesOf,
      volumeGroups: parts.volumeGroupsOf,
      grants: parts.grants,
      podGrants: parts.podGrants,
      subPath: async (podDir, part, signal) => {
        const target = subPathTarget(podDir, part);
        await volumeParts.bind(part.volumePath, part.path, target, signal);
        return target;
      },
      volumeFile: (volume, path) => volumeParts.readText(volume, path, longestVolumeFile),
    },
  );
}

/** A file of variables is read whole into memory. */
const longestVolumeFile = 1 << 20;

/** Named as the Go kubelet does, so that either cleans up after the other. */
function subPathTarget(podDir: string, { specName, containerName, index }: SubPath): string {
  return posix.join(podDir, 'volume-subpaths', specName, containerName, `${index}`);
}
