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
  /** Left out, all sandboxes are made at once. */
  readonly sandboxLimiter?: SandboxLimit;
  readonly crashBackoff: CrashBackoff;
  readonly hooks: HookRunner;
  readonly credentials: CredentialProvider;
  readonly pullRecords?: PullRecords | undefined;
  /** Against whoever removes images; nobody does unless given. */
  readonly imageLeases?: ImageLeases | undefined;
  readonly pods: GcPods;
  readonly settings: RuntimeManagerSettings;
  readonly startObserver?: StartObserver | undefined;
  readonly startCheckpoint?: StartCheckpoint | undefined;
  readonly beforeStop?: ((uid: PodUid) => Promise<void>) | undefined;
  readonly hookCheckpoint?: HookCheckpoint | undefined;
  /** What the runtime was told of resources outlives this process only where it is given. */
  readonly actuated?: ActuatedResources | undefined;
  /** Pods have no cgroups of their own unless given. */
  readonly podLimits?: PodLimitsAccess | undefined;
  readonly allocationPersisted?: PodResizerDeps['allocationPersisted'] | undefined;
  readonly resizeObserver?: PodResizerDeps['observe'];
}

export interface RuntimeManagerSettings {
  /** The scheme of container ids in statuses, as the runtime calls itself. */
  readonly runtimeName: string;
  readonly podLogsDir: string;
  readonly logLinksDir: string;
  readonly pulls: PullLimits;
  readonly gc: GcPolicy;
}

export interface ExecRequest {
  /** The runtime's own id, without the scheme. */
  readonly containerId: string;
  readonly command: readonly string[];
  /** Zero for as long as it takes. */
  readonly timeoutSeconds: number;
}

export interface RestartRequest {
  readonly pod: Pod;
  /** What the runtime said of it last. */
  readonly observed: ObservedPod;
  /** Of the container that is said to have ended. */
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
 * The pods of the container runtime: what is there, and making it what it should be. The only place that tells the
 * runtime anything about pods. One sync or kill of one pod at a time is the caller's duty.
 */
export class RuntimeManager implements AsyncDisposable {
  /** Why containers do not start; see their waiting state. */
  readonly reasons = new ReasonCache();
  /** Ways into what runs. */
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
  /** Pods that are being synced. */
  readonly #syncing = new Set<PodUid>();
  /** What was seen of pods before something was done about them. */
  readonly #usedObservations = new WeakSet<object>();

  constructor(deps: RuntimeManagerDeps) {
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
    const {
      startObserver = unobservedStarts,
      startCheckpoint = noStartCheckpoint,
      hookCheckpoint = noHookCheckpoint,
    } = deps;
    const { imageLeases: leases = new ImageLeases() } = deps;
    this.#images = new ImageManager({ ...deps, startObserver, limits: settings.pulls, leases });
    const { actuated = memoryActuated(), podLimits: limits = noPodLimits } = deps;
    this.#actuated = actuated;
    const postStart = new PostStartHooks({ ...parts, hookCheckpoint });
    this.#containers = new ContainerStarter({
      ...parts,
      startCheckpoint,
      postStart,
      actuated,
      images: this.#images,
    });
    this.#sync = {
      ...parts,
      startObserver,
      sandboxes: new SandboxStarter({
        ...parts,
        startObserver,
        limit: deps.sandboxLimiter ?? noSandboxLimit,
      }),
      postStart,
      hookCheckpoint,
      images: this.#images,
      actuated,
      resizer: new PodResizer({
        ...parts,
        limits,
        actuated,
        allocationPersisted: deps.allocationPersisted ?? (async () => {}),
        observe: deps.resizeObserver,
      }),
      containers: this.#containers,
    };
  }

  /** Every pod of which the runtime has something. */
  listPods(signal: AbortSignal): Promise<readonly RuntimePod[]> {
    return this.#observer.listPods(signal);
  }

  /** undefined when the runtime has nothing of the pod. */
  listPod(uid: PodUid, signal: AbortSignal): Promise<RuntimePod | undefined> {
    return this.#observer.listPod(uid, signal);
  }

  /** The addresses the pod has at this moment; none on the network of the node. */
  async podIps(uid: PodUid, signal: AbortSignal): Promise<readonly string[]> {
    const listed = await this.#observer.listPod(uid, signal);
    if (listed === undefined) return [];
    return (await this.#observer.observe({ ...listed, containers: [] }, signal)).ips;
  }

  /**
   * Runs a command in a container; what it prints comes together. A failure of the command is an answer, one that does
   * not end in time rejects with CRI_EXEC_TIMEOUT.
   */
  async execSync(
    { containerId, command, timeoutSeconds }: ExecRequest,
    signal: AbortSignal,
  ): Promise<{ readonly exitCode: number; readonly output: Uint8Array }> {
    const request = { containerId, cmd: command, timeout: BigInt(timeoutSeconds) };
    const { exitCode, stdout, stderr } = await this.#deps.cri.execSync(request, signal);
    return { exitCode, output: Buffer.concat([stdout, stderr]) };
  }

  /** All details of a listed pod. */
  observe(pod: RuntimePod, signal: AbortSignal): Promise<ObservedPod> {
    return this.#observer.observe(pod, signal);
  }

  /** Brings the pod's containers to its spec as far as that goes now; failures are part of the result. */
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

  /** What the runtime was told to give the containers of the pod, as far as is known. */
  actuatedOf(pod: Pod, observed: ObservedPod): PodAllocation | undefined {
    return actuatedOf(pod, observed, this.#actuated.get(pod.metadata.uid));
  }

  /** Whether something of the pod runs with other resources than the pod is given with. */
  isResizeInProgress(pod: Pod, observed: ObservedPod): boolean {
    return isResizeInProgress(pod, observed, this.actuatedOf(pod, observed));
  }

  /** The cgroup of the pod was made, with what the pod was allocated. */
  cgroupMade(pod: Pod): void {
    recordPodCgroup(this.#actuated, pod);
  }

  /**
   * The runtime announces that a container has ended, but may not show it yet: if it is to run once more, its next
   * instance is made meanwhile, as long as `mayCreate` says so. The next sync starts it.
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

  /** Whether nobody has acted on the pod since it was looked at, or acts on it now. */
  #isUnchanged(uid: PodUid, observed: ObservedPod): boolean {
    return !this.#syncing.has(uid) && !this.#usedObservations.has(observed);
  }

  /** Stops everything of the pod and removes nothing. */
  async killPod(request: KillPodRequest, signal: AbortSignal): Promise<KillResult> {
    this.#usedObservations.add(request.running);
    await this.#containers.preparations.cancel(request.pod.metadata.uid);
    return await this.#killer.killPod(request, signal);
  }

  /** The same for a pod nobody has a spec of: what was written on its containers must do. */
  async killRuntimePod(
    pod: RuntimePod,
    graceSeconds: () => number,
    signal: AbortSignal,
  ): Promise<KillResult> {
    const observed = await this.#observer.observe(pod, signal);
    const kill = { pod: restorePod(observed), running: observed, graceSeconds: graceSeconds() };
    return await this.#killer.killPod(kill, signal);
  }

  /** Throws CONTAINER_GC with what could not be removed. */
  garbageCollect(scope: GcScope, signal: AbortSignal): Promise<void> {
    this.#deps.crashBackoff.collect(this.#deps.clock.now());
    return this.#gc.collect(scope, signal);
  }

  /** Removes what is left of a stopped pod that nobody wants any more. */
  removePod(pod: Pod, signal: AbortSignal): Promise<void> {
    return this.#gc.collectPod(pod, signal);
  }

  /** Removes dead containers in the background. */
  deleteSurplus(observed: ObservedPod, surplus: Surplus): void {
    this.#deletor.deleteSurplus(observed, surplus);
  }

  /** The pod is gone for good: nothing is remembered of it. */
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

  /** What is remembered of work under way: all zero when nothing is. */
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

  /** Gives up hooks and removals still under way; containers run on. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#killer[Symbol.dispose]();
    await this.#deletor[Symbol.asyncDispose]();
  }
}
