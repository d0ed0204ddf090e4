import { posix } from 'node:path';
import { PodCheckpoints, podsDirOf, RestoredPods } from '../../checkpoints/index.ts';
import { FlightRecorder, NodeJournal } from '../../journal/index.ts';
import { HintLatch, WorkQueue } from '../../lib/index.ts';
import { PodCache } from '../../pleg/index.ts';
import { type PodJournal, PodManager, type PodUid } from '../../pods/index.ts';
import {
  AllocatedPods,
  PendingAdmissions,
  PodResourceFile,
  ResizeConditions,
} from '../../resources/index.ts';
import { RuntimeState } from '../../runtime/index.ts';
import { manifestSources, PodConfig, sourceNames } from '../../sources/index.ts';
import { StatusManager } from '../../status/index.ts';
import {
  PodControl,
  PodWorkerQueries,
  type WorkerObserver,
  WorkerState,
  workerMetrics,
} from '../../workers/index.ts';
import type { KubeletDeps } from '../kubelet-deps.ts';
import { collectPodMetrics, kubeletMetrics } from '../metrics.ts';
import { PodFacts } from '../pod-facts.ts';
import type { KubeletSettings } from '../settings.ts';

export const bootFile = '/proc/sys/kernel/random/boot_id';

/**
 * The state of the kubelet. This stage only reads checkpoints, and does not act on pods, the
 * runtime or the machine.
 */
export type KubeletState = ReturnType<typeof createState>;

export function createState(settings: KubeletSettings, deps: KubeletDeps) {
  const { clock, logger, metrics, cluster } = deps;
  const journals = createJournals(settings, deps);
  const { journal } = journals;
  const observer = kubeletMetrics(metrics);
  const workerObserver = workerMetrics(metrics);
  const podState = createPodState(settings, deps, { ...journals, workerObserver });
  const { queue, checkpoints, allocated } = podState;
  const podSources = createSources(settings, deps, { ...journals, ...podState });
  return {
    settings,
    deps,
    ...journals,
    observer,
    workerObserver,
    ...podState,
    ...podSources,
    pendingAdmissions: new PendingAdmissions(),
    control: new PodControl({ clock, logger, journal }),
    runtimeState: new RuntimeState(clock),
    /** Signals that the runtime may have stopped or started to respond. */
    runtimeHints: new HintLatch(clock),
    /** The addresses of the Node object, or of the machine while the Node object has none. */
    nodeIps(): readonly string[] {
      const published = cluster?.nodeIps() ?? [];
      return published.length > 0 ? published : settings.nodeIps;
    },
    /** Syncs the pod with the next tick of the sync loop, or at the latest after the delay. */
    requestSync(uid: PodUid, delayMs = 0): void {
      queue.add(uid, delayMs);
    },
    loops: Object.fromEntries(podSources.sources),
    /** Reads the checkpoints of previous kubelet processes. */
    async open(): Promise<void> {
      await Promise.all([checkpoints.open(), allocated.open()]);
    },
  };
}

interface Journals {
  readonly flights: FlightRecorder;
  readonly journal: PodJournal;
  readonly node: NodeJournal;
}

function createJournals({ nodeName }: KubeletSettings, { clock, logger, cluster }: KubeletDeps): Journals {
  const flights = new FlightRecorder({ clock, nodeName });
  return {
    flights,
    journal: cluster?.journal(flights) ?? flights,
    node: new NodeJournal({ clock, logger, nodeName, tell: cluster?.nodeEvent }),
  };
}

type PodState = ReturnType<typeof createPodState>;

/** Creates the stores of pods: their specs, statuses, observations and checkpoints. */
function createPodState(
  settings: KubeletSettings,
  deps: KubeletDeps,
  { journal, node, workerObserver }: Journals & { readonly workerObserver: WorkerObserver },
) {
  const { clock, logger, machine, metrics } = deps;
  /** The pods whose next sync is due or scheduled. */
  const queue = new WorkQueue<PodUid>(clock);
  const pods = new PodManager();
  collectPodMetrics(metrics, () => pods.getPods());
  const findPod = (uid: PodUid) => pods.getPodByUid(pods.translatePodUid(uid));
  const statuses = new StatusManager({ clock, logger, findPod });
  const cache = new PodCache();
  const checkpoints = new PodCheckpoints({
    clock,
    logger,
    files: machine.files,
    podsDir: podsDirOf(settings.rootDir),
    readBoot: () => machine.readFile(bootFile),
  });
  const allocated = allocatedPods(settings, deps, node);
  const workers = new WorkerState({ clock, log: logger, journal, metrics: workerObserver, queue });
  const facts = new PodFacts({ pods, statuses, workers, allocated });
  return { queue, pods, statuses, cache, checkpoints, allocated, workers, facts };
}

/** Creates the sources of pods, and the parts that depend on whether all sources are ready. */
function createSources(
  settings: KubeletSettings,
  deps: KubeletDeps,
  { journal, node, cache, checkpoints, workers, facts }: Journals & PodState,
) {
  const { clock, logger } = deps;
  const config = new PodConfig({
    sources: sourceNames(settings),
    clock,
    logger,
    journal,
    isFinished: (uid) => facts.hasEnded(uid),
  });
  const restored = new RestoredPods({
    checkpoints,
    observed: (uid) => cache.get(uid),
    sources: config,
  });
  const queries = new PodWorkerQueries(workers, (uid) => restored.areSourcesReadyFor(uid));
  const sources = manifestSources(settings, {
    ...deps,
    config,
    node,
    ranHere: (uid) => checkpoints.wasAdmittedInThisBoot(uid),
  });
  return { config, restored, queries, sources };
}

function allocatedPods(
  { rootDir }: KubeletSettings,
  { clock, logger, machine: { files } }: KubeletDeps,
  node: Pick<NodeJournal, 'event'>,
): AllocatedPods {
  const file = (name: string) => {
    const path = posix.join(rootDir, name);
    const corrupted = (what: string) => {
      const message = `${what}. The allocated resources of pods are read from their statuses and from the runtime instead`;
      logger.warn(message, { path });
      node.event({ type: 'Warning', reason: 'CheckpointCorrupt', message });
    };
    return new PodResourceFile({ path, files, logger, corrupted });
  };
  return new AllocatedPods(
    { allocated: file('allocated_pods_state'), actuated: file('actuated_pods_state') },
    new ResizeConditions(clock),
  );
}
