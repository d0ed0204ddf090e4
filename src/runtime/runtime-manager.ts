import type { CriClient, VersionResponse } from '../cri/index.ts';
import type { Clock, Logger, Random } from '../lib/index.ts';
import type { ObservedPod, Pod, PodAllocation, PodJournal, PodUid, RuntimePod } from '../pods/index.ts';
import { ContainerDeletor, ContainerRemover, type Surplus } from './containers/container-deletor.ts';
import { ContainerGc, type GcPods, type GcPolicy, type GcScope } from './containers/container-gc.ts';
import { ContainerStarter } from './containers/container-starter.ts';
import { restorePod } from './containers/labels.ts';
import { PodStreams } from './containers/pod-streams.ts';
import type { RuntimeFiles } from './containers/runtime-files.ts';
import { noStartCheckpoint, type StartCheckpoint } from './containers/start-checkpoint.ts';
import type { HookRunner } from './hooks/lifecycle-hooks.ts';
import { type HookCheckpoint, noHookCheckpoint } from './hooks/lifecycle-hooks.ts';
import { PostStartHooks } from './hooks/post-start.ts';
import type { CredentialProvider } from './images/credentials/keyring.ts';
import { ImageLeases } from './images/gc/image-leases.ts';
import { ImageManager } from './images/image-manager.ts';
import type { PullLimits } from './images/image-pulls.ts';
import type { PullRecords } from './images/pull-records/pull-records.ts';
import { type KillPodRequest, PodKiller } from './kill/pod-killer.ts';
import { type StartObserver, unobservedStarts } from './metrics.ts';
import type { CrashBackoff } from './plan/crash-backoff.ts';
import type { PodPlanner } from './plan/pod-planner.ts';
import { announcedExit } from './plan/restart-preparation.ts';
import {
  type ActuatedResources,
  actuatedOf,
  memoryActuated,
  recordPodCgroup,
} from './resize/actuated-resources.ts';
import { noPodLimits, type PodLimitsAccess } from './resize/pod-limits.ts';
import { PodResizer, type PodResizerDeps } from './resize/pod-resizer.ts';
import { isResizeInProgress } from './resize/resize-plan.ts';
import { noSandboxLimit, type SandboxLimit } from './sandbox/sandbox-limiter.ts';
import { SandboxStarter } from './sandbox/sandbox-starter.ts';
import { PodSync, type PodSyncDeps, type SyncPodRequest } from './sync/pod-sync.ts';
import { ReasonCache } from './sync/reason-cache.ts';
import { RuntimeObserver } from './sync/runtime-observer.ts';
import type { KillResult, SyncPodResult } from './sync/sync-result.ts';

export interface RuntimeManagerDeps {
  readonly cri: CriClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly journal: PodJournal;
  readonly logger: Logger;
  readonly files: RuntimeFiles;
  readonly planner: PodPlanner;
  /** Limits concurrent sandbox creations; unlimited when undefined. */
  readonly sandboxLimiter?: SandboxLimit;
  readonly crashBackoff: CrashBackoff;
  readonly hooks: HookRunner;
  readonly credentials: CredentialProvider;
  readonly pullRecords?: PullRecords | undefined;
  /**
   * Leases of images in use, shared with image garbage collection; if undefined, the runtime
   * manager creates its own.
   */
  readonly imageLeases?: ImageLeases | undefined;
  readonly pods: GcPods;
  readonly settings: RuntimeManagerSettings;
  readonly startObserver?: StartObserver | undefined;
  readonly startCheckpoint?: StartCheckpoint | undefined;
  readonly beforeStop?: ((uid: PodUid) => Promise<void>) | undefined;
  readonly hookCheckpoint?: HookCheckpoint | undefined;
  /** Persists applied resources; undefined to keep them in memory only. */
  readonly actuated?: ActuatedResources | undefined;
  /** Access to pod cgroups; undefined when pods have no cgroups. */
  readonly podLimits?: PodLimitsAccess | undefined;
  readonly allocationPersisted?: PodResizerDeps['allocationPersisted'] | undefined;
  readonly resizeObserver?: PodResizerDeps['observe'];
}

export interface RuntimeManagerSettings {
  /** The runtime's name, used as the scheme of container ids in statuses. */
  readonly runtimeName: string;
  readonly podLogsDir: string;
  readonly logLinksDir: string;
  readonly pulls: PullLimits;
  readonly gc: GcPolicy;
}

export interface ExecRequest {
  /** The runtime's container id, without the scheme prefix. */
  readonly containerId: string;
  readonly command: readonly string[];
  /** Timeout of the command in seconds; zero for no timeout. */
  readonly timeoutSeconds: number;
}

export interface RestartRequest {
  readonly pod: Pod;
  /** The last observation of the pod in the pod cache. */
  readonly observed: ObservedPod;
  /** Id of the container whose exit was announced by a runtime event. */
  readonly containerId: string;
}

type PendingKind =
  | 'kills'
  | 'preparations'
  | 'deletions'
  | 'reasons'
  | 'crashBackoffs'
  | 'pulls'
  | 'pullBackoffs';

/**
 * Runtime manager: observes and changes pods of the container runtime. It is the only caller of the
 * CRI for pods. The caller serializes syncs and kills of one pod.
 */
export class RuntimeManager implements AsyncDisposable {
  /** Reasons shown in the status of waiting containers. */
  readonly reasons = new ReasonCache();
  /** Opens exec, attach and port-forward streams. */
  readonly streams: PodStreams;
  readonly #deps: RuntimeManagerDeps;
  readonly #observer: RuntimeObserver;
  readonly #killer: PodKiller;
  readonly #deletor: ContainerDeletor;
  readonly #gc: ContainerGc;
  readonly #images: ImageManager;
  readonly #containers: ContainerStarter;
  readonly #sync: PodSyncDeps;
  readonly #actuated: ActuatedResources;
  /** Pods with a running sync. */
  readonly #syncing = new Set<PodUid>();
  /** Observations that a sync or kill has already used; they are outdated. */
  readonly #usedObservations = new WeakSet<object>();

  constructor(given: RuntimeManagerDeps) {
    const deps = withDefaults(given);
    const { settings } = deps;
    this.#deps = deps;
    this.#observer = new RuntimeObserver({ ...deps, ...settings });
    this.streams = new PodStreams({ ...deps, observer: this.#observer });
    this.#killer = new PodKiller({ ...deps, sandboxStopping: (id) => this.#observer.forget(id) });
    const remover = new ContainerRemover({
      ...deps,
      logLinksDir: settings.logLinksDir,
      removed: (id) => this.#killer.forget(id),
    });
    const parts = { ...deps, ...settings, killer: this.#killer, remover, observer: this.#observer };
    this.#deletor = new ContainerDeletor(parts);
    this.#gc = new ContainerGc({ ...parts, policy: settings.gc });
    this.#images = new ImageManager({ ...deps, limits: settings.pulls, leases: deps.imageLeases });
    this.#actuated = deps.actuated;
    const postStart = new PostStartHooks(parts);
    this.#containers = new ContainerStarter({ ...parts, postStart, images: this.#images });
    this.#sync = {
      ...parts,
      sandboxes: new SandboxStarter({ ...parts, limit: deps.sandboxLimiter }),
      postStart,
      images: this.#images,
      resizer: new PodResizer({ ...parts, limits: deps.podLimits, observe: deps.resizeObserver }),
      containers: this.#containers,
    };
  }

  /** All pods with a sandbox or container in the runtime. */
  listPods(signal: AbortSignal): Promise<readonly RuntimePod[]> {
    return this.#observer.listPods(signal);
  }

  /**
   * Lists one pod from the runtime; undefined when the runtime has no sandbox or container of the
   * pod.
   */
  listPod(uid: PodUid, signal: AbortSignal): Promise<RuntimePod | undefined> {
    return this.#observer.listPod(uid, signal);
  }

  /** The pod's current IP addresses; empty for a pod on the host network. */
  async podIps(uid: PodUid, signal: AbortSignal): Promise<readonly string[]> {
    const listed = await this.#observer.listPod(uid, signal);
    if (listed === undefined) return [];
    return (await this.#observer.observe({ ...listed, containers: [] }, signal)).ips;
  }

  /**
   * Runs a command in a container and returns its combined output. A non-zero exit code does not
   * reject; a timeout rejects with CRI_EXEC_TIMEOUT.
   */
  async execSync(
    { containerId, command, timeoutSeconds }: ExecRequest,
    signal: AbortSignal,
  ): Promise<{ readonly exitCode: number; readonly output: Uint8Array }> {
    const request = { containerId, cmd: command, timeout: BigInt(timeoutSeconds) };
    const { exitCode, stdout, stderr } = await this.#deps.cri.execSync(request, signal);
    return { exitCode, output: Buffer.concat([stdout, stderr]) };
  }

  /** Reads the statuses of a listed pod's sandboxes and containers. */
  observe(pod: RuntimePod, signal: AbortSignal): Promise<ObservedPod> {
    return this.#observer.observe(pod, signal);
  }

  /**
   * SyncPod: brings the pod's containers as close to its spec as possible now. Returns failures in
   * the result.
   */
  async syncPod(request: SyncPodRequest, signal: AbortSignal): Promise<SyncPodResult> {
    const { uid } = request.pod.metadata;
    const sync = new PodSync(this.#sync, request);
    this.#usedObservations.add(request.observed);
    this.#syncing.add(uid);
    try {
      const result = await sync.run(signal);
      if (result.actions.length === 0) this.#usedObservations.delete(request.observed);
      return result;
    } finally {
      this.#syncing.delete(uid);
      this.reasons.update(uid, sync.starts);
    }
  }

  /** Resources last applied to the pod's containers; undefined when unknown. */
  actuatedOf(pod: Pod, observed: ObservedPod): PodAllocation | undefined {
    return actuatedOf(pod, observed, this.#actuated.get(pod.metadata.uid));
  }

  /** Whether a running container's applied resources differ from its allocation. */
  isResizeInProgress(pod: Pod, observed: ObservedPod): boolean {
    return isResizeInProgress(pod, observed, this.actuatedOf(pod, observed));
  }

  /** Records the pod's allocation; called after the pod's cgroup was created with it. */
  cgroupCreated(pod: Pod): void {
    recordPodCgroup(this.#actuated, pod);
  }

  /**
   * Creates the next instance of a container whose exit was announced but is not listed by the
   * runtime, if the container restarts whatever its exit code is and `mayCreate` returns true. The
   * next sync starts the instance.
   */
  async prepareRestart(
    { pod, observed, containerId }: RestartRequest,
    mayCreate: () => boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const exit = announcedExit(pod, observed, containerId, this.#deps.clock.now());
    const mayPrepare = () => mayCreate() && this.#isUnchanged(pod.metadata.uid, observed);
    if (exit === undefined || !mayPrepare()) return;
    const { config } = await this.#deps.planner.sandboxPlan(pod, exit.sandbox.attempt, signal);
    const sandbox = { id: exit.sandbox.id, config, ips: observed.ips };
    const start = { ...exit, pod, sandbox, inspectedImages: new Map(), stopped: new Set<string>() };
    if (mayPrepare()) this.#containers.prepare(start, mayCreate, signal);
  }

  /**
   * Whether the observation is current: no sync or kill has used it, and none is running for the
   * pod.
   */
  #isUnchanged(uid: PodUid, observed: ObservedPod): boolean {
    return !this.#syncing.has(uid) && !this.#usedObservations.has(observed);
  }

  /** Stops all containers and sandboxes of the pod without removing them. */
  async killPod(request: KillPodRequest, signal: AbortSignal): Promise<KillResult> {
    this.#usedObservations.add(request.running);
    await this.#containers.preparations.cancel(request.pod.metadata.uid);
    return await this.#killer.killPod(request, signal);
  }

  /** Stops a pod whose spec is unknown, using the annotations of its containers. */
  async killRuntimePod(
    pod: RuntimePod,
    graceSeconds: () => number,
    signal: AbortSignal,
  ): Promise<KillResult> {
    const observed = await this.#observer.observe(pod, signal);
    const kill = { pod: restorePod(observed), running: observed, graceSeconds: graceSeconds() };
    return await this.#killer.killPod(kill, signal);
  }

  /** Removes dead containers and sandboxes. Throws CONTAINER_GC with a list of all failures. */
  garbageCollect(scope: GcScope, signal: AbortSignal): Promise<void> {
    this.#deps.crashBackoff.collect(this.#deps.clock.now());
    return this.#gc.collect(scope, signal);
  }

  /** Removes all containers and sandboxes of a stopped pod from the runtime. */
  removePod(pod: Pod, signal: AbortSignal): Promise<void> {
    return this.#gc.collectPod(pod, signal);
  }

  /** Removes surplus dead containers in the background. */
  deleteSurplus(observed: ObservedPod, surplus: Surplus): void {
    this.#deletor.deleteSurplus(observed, surplus);
  }

  /** Drops all in-memory state of a deleted pod. */
  forgetPod(uid: PodUid): void {
    void this.#containers.preparations.cancel(uid);
    this.reasons.forgetPod(uid);
    this.#killer.forgetPod(uid);
    this.#images.forgetPod(uid);
    this.#deps.crashBackoff.forgetPod(uid);
  }

  version(signal: AbortSignal): Promise<VersionResponse> {
    return this.#deps.cri.checkVersion(signal);
  }

  /** Sizes of the runtime manager's queues and caches; all are zero when it is idle. */
  pending(): Readonly<Record<PendingKind, number>> {
    return {
      kills: this.#killer.size,
      preparations: this.#containers.preparations.size,
      deletions: this.#deletor.size,
      reasons: this.reasons.size,
      crashBackoffs: this.#deps.crashBackoff.size,
      ...this.#images.pending(),
    };
  }

  /** Cancels running lifecycle hooks and removals; containers keep running. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#killer[Symbol.dispose]();
    await this.#deletor[Symbol.asyncDispose]();
  }
}

function withDefaults(deps: RuntimeManagerDeps) {
  return {
    ...deps,
    sandboxLimiter: deps.sandboxLimiter ?? noSandboxLimit,
    imageLeases: deps.imageLeases ?? new ImageLeases(),
    startObserver: deps.startObserver ?? unobservedStarts,
    startCheckpoint: deps.startCheckpoint ?? noStartCheckpoint,
    hookCheckpoint: deps.hookCheckpoint ?? noHookCheckpoint,
    actuated: deps.actuated ?? memoryActuated(),
    podLimits: deps.podLimits ?? noPodLimits,
    allocationPersisted: deps.allocationPersisted ?? (async () => {}),
  };
}
