import { posix } from 'node:path';
import type { ExclusiveResources, HintProvider } from '../../resources/index.ts';
import { readContainerResources, updateContainerCpuset } from '../../runtime/index.ts';
import type { KubeletDeps } from '../kubelet-deps.ts';
import type { KubeletSettings } from '../settings.ts';
import type { KubeletState } from './state.ts';

/**
 * The implementation for a node without exclusive CPUs and memory. The code that allocates them is
 * not loaded there.
 */
const noExclusiveResources: ExclusiveResources = {
  numaNodes: undefined,
  restore: async () => {},
  isRequestedBy: () => false,
  allocatePod: async () => undefined,
  adopt() {},
  placementFor: () => ({}),
  hasExclusiveCpus: () => false,
  allocated: () => ({}),
  loops: () => ({}),
};

const stateFileMode = 0o600;
/**
 * The maximum size of a state file. The state of thousands of containers takes less than a
 * hundredth of it.
 */
const mostStateBytes = 1 << 24;

/**
 * Creates the allocator for exclusive CPUs and memory, which are allocated together with the
 * resources of the `providers`.
 */
export async function openExclusiveResources(
  { settings, deps, config, facts, queries, workers, cache }: KubeletState,
  providers: readonly HintProvider[],
): Promise<ExclusiveResources> {
  const { exclusiveResources } = settings;
  const { cri } = deps;
  const leave = await resetFormerPolicies(settings, deps);
  if (exclusiveResources === undefined)
    return leave === undefined ? noExclusiveResources : { ...noExclusiveResources, restore: leave };
  const { createResourceAllocator, runtimePlacement } = await import('../../resources/exclusive/index.ts');
  return await createResourceAllocator(exclusiveResources, {
    ...deps,
    ...filesOf(settings, deps),
    resetPolicies: leave,
    providers: () => providers,
    activePods: () => (config.allReady() ? facts.activePods() : undefined),
    runningContainers: (uid) => {
      const { containers = [] } = cache.lastObserved(uid) ?? {};
      // The newest instance of each container, if it is running.
      const newest = new Map(containers.toReversed().map((container) => [container.name, container]));
      return [...newest.values()].filter(({ state }) => state === 'running');
    },
    mayRun: (uid) => queries.couldHaveRunningContainers(uid),
    isAnyEnding: ({ metadata }) =>
      [...workers].some(
        ({ uid, lifecycle }) =>
          uid !== metadata.uid && lifecycle.terminationRequested && queries.couldHaveRunningContainers(uid),
      ),
    fromRuntime: async (signal) => {
      const containers = await readContainerResources(cri, signal);
      return containers.map((container) => runtimePlacement(container, container.linux));
    },
    update: (containerId, cpusetCpus, signal) =>
      updateContainerCpuset(cri, containerId, { cpusetCpus }, signal),
  });
}

/**
 * Returns a function that releases the exclusive resources of static policies that are no longer
 * configured; undefined if there are none.
 */
async function resetFormerPolicies(settings: KubeletSettings, deps: KubeletDeps) {
  const former = await formerPolicies(settings, deps);
  if (former.length === 0) return undefined;
  const { resetStaticPolicies, runtimePlacement } = await import('../../resources/exclusive/index.ts');
  const { logger, cri } = deps;
  const parts = {
    logger,
    ...filesOf(settings, deps),
    update: (
      containerId: string,
      cpuset: { readonly cpusetCpus?: string; readonly cpusetMems?: string },
      signal: AbortSignal,
    ) => updateContainerCpuset(cri, containerId, cpuset, signal),
    placed: async (signal: AbortSignal) => {
      const running = (await readContainerResources(cri, signal)).filter(({ isRunning }) => isRunning);
      return running.map(({ id, ...container }) => ({ id, ...runtimePlacement(container, container.linux) }));
    },
  };
  return (signal: AbortSignal) => resetStaticPolicies(former, parts, signal);
}

/** The static policies of a previous kubelet process that are no longer configured. */
async function formerPolicies(
  settings: KubeletSettings,
  deps: KubeletDeps,
): Promise<readonly ('cpu' | 'memory')[]> {
  const { stateFile } = filesOf(settings, deps);
  const former: ('cpu' | 'memory')[] = [];
  for (const manager of ['cpu', 'memory'] as const) {
    if (settings.exclusiveResources?.[manager] !== undefined) continue;
    const text = await stateFile(`${manager}_manager_state`).read();
    if (text !== undefined && /"policyName":"static"/i.test(text)) former.push(manager);
  }
  return former;
}

function filesOf({ rootDir }: KubeletSettings, { machine }: KubeletDeps) {
  return {
    files: machine.facts ?? {
      read: (path: string) => machine.readFile(path),
      list: (path: string) => machine.files.names(path),
    },
    stateFile: (name: string) => {
      const path = posix.join(rootDir, name);
      return {
        read: async () => (await machine.files.readEnd(path, mostStateBytes))?.toString('utf8'),
        write: (text: string) => machine.files.replace(path, text, { mode: stateFileMode }),
      };
    },
  };
}
