import { posix } from 'node:path';
import type { LinuxContainerResources } from '../cri/index.ts';
import { isKind } from '../lib/index.ts';
import { hugePageResource, type ObservedPod, type Pod, type PodUid, podUid } from '../pods/index.ts';
import type { Allotments, HintProvider, RunningContainer, RuntimePlacement } from '../resources/index.ts';
import { labels } from '../runtime/index.ts';
import type { KubeletDeps } from './kubelet-deps.ts';
import type { KubeletSettings } from './settings.ts';

/** What is known of pods. */
export interface PodView {
  /** Undefined before all sources have told theirs. */
  active(): readonly Pod[] | undefined;
  /** Who else gives out something that has its place on the machine. */
  providers(): readonly HintProvider[];
  /** Whether something of the pod may run, also when no source wants it any more. */
  mayRun(uid: PodUid): boolean;
  isAnyEnding(besides: PodUid): boolean;
  observed(uid: PodUid): ObservedPod | undefined;
}

type Settings = Pick<KubeletSettings, 'allotment' | 'rootDir'>;
type Deps = Pick<KubeletDeps, 'clock' | 'logger' | 'metrics' | 'cri' | 'machine'>;

/** Nothing has its place: what most nodes do, and what costs nothing. */
export const noAllotments: Allotments = {
  numaNodes: undefined,
  open: async () => {},
  isAskedBy: () => false,
  allot: async () => undefined,
  adopt() {},
  grantsFor: () => ({}),
  hasExclusiveCpus: () => false,
  given: () => ({}),
  loops: () => ({}),
};

const stateFileMode = 0o600;
/** With thousands of containers it is not a hundredth of this. */
const mostStateBytes = 1 << 24;

/** The view is asked only once pods are known. */
export async function openAllotments(
  settings: Settings,
  deps: Deps,
  view: () => PodView | undefined,
): Promise<Allotments> {
  const { allotment } = settings;
  const leave = await leaving(settings, deps);
  if (allotment === undefined) return leave === undefined ? noAllotments : { ...noAllotments, open: leave };
  const { openAllotter } = await import('../resources/exclusive/index.ts');
  const { update, ...parts } = partsOf(settings, deps);
  return await openAllotter(allotment, {
    ...deps,
    ...parts,
    leave,
    activePods: () => view()?.active(),
    runningContainers: (uid) => runningIn(view()?.observed(uid)),
    providers: () => view()?.providers() ?? [],
    mayRun: (uid) => view()?.mayRun(uid) ?? true,
    isAnyEnding: ({ metadata: { uid } }) => view()?.isAnyEnding(uid) ?? false,
    fromRuntime: (signal) => placementsIn(deps.cri, signal),
    update: (containerId, cpusetCpus, signal) => update(containerId, { cpusetCpus }, signal),
  });
}

/** Undoes what static policies have done that are not wanted any more; undefined where there were none. */
async function leaving(settings: Settings, deps: Deps) {
  const left = await formerPolicies(settings, deps);
  if (left.length === 0) return undefined;
  const { leaveStatic } = await import('../resources/exclusive/index.ts');
  const placed = async (signal: AbortSignal) =>
    (await placementsIn(deps.cri, signal)).filter(({ isRunning }) => isRunning);
  return (signal: AbortSignal) => leaveStatic(left, { ...partsOf(settings, deps), placed }, signal);
}

function partsOf({ rootDir }: Settings, { logger, machine, cri }: Deps) {
  return {
    logger,
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
    update: async (
      containerId: string,
      linux: Pick<Partial<LinuxContainerResources>, 'cpusetCpus' | 'cpusetMems'>,
      signal: AbortSignal,
    ) => {
      await cri.updateContainerResources({ containerId, linux }, signal);
    },
  };
}

/** The static policies that an earlier kubelet had and this one has not. */
async function formerPolicies(settings: Settings, deps: Deps): Promise<readonly ('cpu' | 'memory')[]> {
  const { stateFile } = partsOf(settings, deps);
  const left: ('cpu' | 'memory')[] = [];
  for (const manager of ['cpu', 'memory'] as const) {
    if (settings.allotment?.[manager] !== undefined) continue;
    const text = await stateFile(`${manager}_manager_state`).read();
    if (text !== undefined && /"policyName":"static"/i.test(text)) left.push(manager);
  }
  return left;
}

/** Of each container the newest instance, where that runs. */
function runningIn(observed: ObservedPod | undefined): readonly RunningContainer[] {
  const newest = new Map(observed?.containers.toReversed().map((container) => [container.name, container]));
  return [...newest.values()].filter(({ state }) => state === 'running');
}

interface Placed extends RuntimePlacement {
  readonly id: string;
  readonly isRunning: boolean;
}

/** Asked only where what was noted cannot be used: each container costs a question. */
export async function placementsIn(
  cri: Pick<KubeletDeps['cri'], 'listContainers' | 'containerStatus'>,
  signal: AbortSignal,
): Promise<readonly Placed[]> {
  const { parseCpuSet } = await import('../resources/exclusive/index.ts');
  const { containers } = await cri.listContainers({}, signal);
  const found: Placed[] = [];
  for (const { id, state, labels: own } of containers) {
    const [uid, container] = [own[labels.podUid], own[labels.containerName]];
    if (uid === undefined || container === undefined) continue;
    const answer = await cri.containerStatus({ containerId: id }, signal).catch((error: unknown) => {
      // It may have gone since it was listed.
      if (isKind(error, 'NotFound')) return undefined;
      throw error;
    });
    if (answer === undefined) continue;
    const linux = answer.status?.resources?.linux;
    found.push({
      id,
      isRunning: state === 'CONTAINER_RUNNING',
      uid: podUid(uid),
      container,
      cpus: parseCpuSet(linux?.cpusetCpus ?? ''),
      cpuShares: Number(linux?.cpuShares ?? 0n),
      cpuQuotaUs: Number(linux?.cpuQuota ?? 0n),
      cpuPeriodUs: Number(linux?.cpuPeriod ?? 0n),
      mems: parseCpuSet(linux?.cpusetMems ?? ''),
      memory: memoryOf(linux),
    });
  }
  return found;
}

function memoryOf(linux: LinuxContainerResources | undefined): ReadonlyMap<string, number> {
  const pages = (linux?.hugepageLimits ?? []).flatMap(({ pageSize, limit }) =>
    limit > 0n ? [[hugePageResource(pageSize), Number(limit)] as const] : [],
  );
  return new Map([['memory', Number(linux?.memoryLimitInBytes ?? 0n)], ...pages]);
}
