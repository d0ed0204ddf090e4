import { posix } from 'node:path';
import { type ObservedPod, type Pod, type PodUid, podUid } from '../pods/index.ts';
import type { Allotments, RunningContainer, RuntimeCpus } from '../resources/index.ts';
import { labels } from '../runtime/index.ts';
import type { KubeletDeps } from './kubelet-deps.ts';
import type { KubeletSettings } from './settings.ts';

/** What is known of pods. */
export interface PodView {
  /** Undefined before all sources have told theirs. */
  active(): readonly Pod[] | undefined;
  isTerminationRequested(uid: PodUid): boolean;
  observed(uid: PodUid): ObservedPod | undefined;
}

/** Nothing has its place: what most nodes do, and what costs nothing. */
export const noAllotments: Allotments = {
  open: async () => {},
  isAskedBy: () => false,
  allot: async () => undefined,
  adopt() {},
  grantsFor: () => ({}),
  hasExclusiveCpus: () => false,
  loops: () => ({}),
};

const stateFileMode = 0o600;
/** With thousands of containers it is not a hundredth of this. */
const mostStateBytes = 1 << 24;

/** The view is asked only once pods are known. */
export async function openAllotments(
  { allotment, rootDir }: Pick<KubeletSettings, 'allotment' | 'rootDir'>,
  deps: Pick<KubeletDeps, 'clock' | 'logger' | 'metrics' | 'cri' | 'machine'>,
  view: () => PodView | undefined,
): Promise<Allotments> {
  if (allotment === undefined) return noAllotments;
  const { openAllotter } = await import('../resources/allotment/index.ts');
  const { machine, cri } = deps;
  return await openAllotter(allotment, {
    ...deps,
    files: { read: (path) => machine.readFile(path), list: (path) => machine.files.names(path) },
    stateFile: (name) => {
      const path = posix.join(rootDir, name);
      return {
        read: async () => (await machine.files.readEnd(path, mostStateBytes))?.toString('utf8'),
        write: (text) => machine.files.replace(path, text, { mode: stateFileMode }),
      };
    },
    activePods: () => view()?.active(),
    runningContainers: (uid) => runningIn(view()?.observed(uid)),
    isAnyEnding: (besides) => isAnyEnding(besides, view()),
    fromRuntime: (signal) => cpusInRuntime(cri, signal),
    update: async (containerId, cpusetCpus, signal) => {
      await cri.updateContainerResources({ containerId, linux: { cpusetCpus } }, signal);
    },
  });
}

/** Of each container the newest instance, where that runs. */
function runningIn(observed: ObservedPod | undefined): readonly RunningContainer[] {
  const newest = new Map(observed?.containers.toReversed().map((container) => [container.name, container]));
  return [...newest.values()].filter(({ state }) => state === 'running');
}

function isAnyEnding(besides: Pod, view: PodView | undefined): boolean {
  const others = view?.active()?.filter(({ metadata: { uid } }) => uid !== besides.metadata.uid) ?? [];
  return others.some(
    ({ metadata: { uid, deletionTimestamp } }) =>
      deletionTimestamp !== undefined || view?.isTerminationRequested(uid) === true,
  );
}

/** Asked only where what was noted cannot be used: each container costs a question. */
async function cpusInRuntime(cri: KubeletDeps['cri'], signal: AbortSignal): Promise<readonly RuntimeCpus[]> {
  const { parseCpuSet } = await import('../resources/allotment/index.ts');
  const { containers } = await cri.listContainers({}, signal);
  const found: RuntimeCpus[] = [];
  for (const { id, labels: own } of containers) {
    const [uid, container] = [own[labels.podUid], own[labels.containerName]];
    if (uid === undefined || container === undefined) continue;
    const linux = (await cri.containerStatus({ containerId: id }, signal)).status?.resources?.linux;
    found.push({
      uid: podUid(uid),
      container,
      cpus: parseCpuSet(linux?.cpusetCpus ?? ''),
      cpuShares: Number(linux?.cpuShares ?? 0n),
      cpuQuotaUs: Number(linux?.cpuQuota ?? 0n),
      cpuPeriodUs: Number(linux?.cpuPeriod ?? 0n),
    });
  }
  return found;
}
