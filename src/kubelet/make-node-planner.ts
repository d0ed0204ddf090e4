import { posix } from 'node:path';
import type { Random } from '../lib/index.ts';
import { type PodJournal, type PodUid, readResources } from '../pods/index.ts';
import type { PodCgroups } from '../resources/index.ts';
import { NodePlanner, noRuntimeClasses } from '../runtime/index.ts';
import type { NodeMachine } from './kubelet-deps.ts';
import type { NodeJournal } from './node-journal.ts';
import type { PlainVolumes } from './plain-volumes.ts';
import type { KubeletSettings } from './settings.ts';

export interface NodePlannerParts {
  readonly random: Random;
  readonly machine: Pick<NodeMachine, 'readFile'>;
  readonly journal: PodJournal;
  readonly node: NodeJournal;
  readonly podsDir: string;
  readonly cgroups: PodCgroups;
  readonly volumesOf: (uid: PodUid) => ReturnType<PlainVolumes['of']>;
}

/** The planner of this node: what pods may ask of it, and where their parts come from. */
export function makeNodePlanner(settings: KubeletSettings, parts: NodePlannerParts): NodePlanner {
  const { random, machine, journal, cgroups, podsDir, volumesOf } = parts;
  const { node, podLogsDir, clusterDns, clusterDomain, resolvConf, capacity } = settings;
  const allocatable = readResources({ cpu: `${capacity.milliCpu}m`, memory: String(capacity.memoryBytes) });
  return new NodePlanner(
    {
      node,
      podLogsDir,
      podsDir,
      seccomp: { profileRoot: posix.join(settings.rootDir, 'seccomp'), fallback: settings.seccompFallback },
      selinux: 'disabled',
      thermalThrottlePaths: settings.thermalThrottlePaths ?? [],
      clusterDns,
      clusterDomain,
      resolvConf,
      stopSignals: 'ignored',
    },
    {
      random,
      journal,
      nodeEvent: (event) => parts.node.trouble(event.reason, event),
      readNodeFile: (path) => machine.readFile(path),
      nodeIps: () => settings.nodeIps,
      allocatable: () => allocatable,
      cgroupParent: (pod) => cgroups.cgroupParent(pod),
      runtimeHandler: noRuntimeClasses,
      supportsRecursiveReadOnly: () => false,
      objects: undefined,
      services: () => ({ state: 'none' }),
      volumes: volumesOf,
      volumeGroups: () => [],
    },
  );
}
