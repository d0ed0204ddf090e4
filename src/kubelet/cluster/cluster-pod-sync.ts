import type { ApiClient, PatchSchema } from '../../api/index.ts';
import type { Node } from '../../kinds/index.ts';
import {
  type Clock,
  KeyedThrottle,
  type Logger,
  type MetricRegistry,
  type Random,
  type TypedEvents,
} from '../../lib/index.ts';
import type { ApiPodCopies, ObjectName } from '../../objects/index.ts';
import type { Pod, PodFullName, PodUid } from '../../pods/index.ts';
import { ApiSource } from '../../sources/index.ts';
import { MirrorPods } from '../../status/mirror/index.ts';
import { StatusWriter, statusWriterMetrics } from '../../status/writer/index.ts';
import type { KubeletState } from '../stages/state.ts';
import type { StartLatency } from './start-latency.ts';

/** Changes of Secrets, ConfigMaps and claims. `namesOf` returns the names of such objects that a pod uses. */
export type ObjectChanges = TypedEvents<{
  changed: { readonly object: ObjectName; readonly namesOf: (pod: Pod) => ReadonlySet<string> };
}>;

export interface ClusterPodSyncDeps {
  readonly api: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
  readonly nodeName: string;
  /** The newest version of the Node object. */
  readonly node: () => Node | undefined;
  readonly starts: StartLatency;
  /** Where pods of the API are persisted; undefined if they are not. */
  readonly podCopies: ApiPodCopies | undefined;
  readonly objectChanges: ObjectChanges;
  readonly schema: PatchSchema;
}

const syncIntervalMs = 1_000;
const statusPollMs = 20;

/** Reads the pods of this node from the API server, and writes their statuses and the mirror pods. */
export class ClusterPodSync implements Disposable {
  readonly source: ApiSource;
  readonly mirrors: MirrorPods;
  readonly writer: StatusWriter;
  readonly #deps: ClusterPodSyncDeps;
  readonly #state: KubeletState;
  /**
   * Limits how often a Secret, ConfigMap or claim that changes constantly triggers a sync of the
   * pods that use it.
   */
  readonly #syncRequests: KeyedThrottle<PodUid>;

  constructor(deps: ClusterPodSyncDeps, state: KubeletState) {
    const { api, clock, metrics, starts, podCopies, schema } = deps;
    this.#deps = deps;
    this.#state = state;
    this.#syncRequests = new KeyedThrottle(clock, syncIntervalMs, (uid) => state.requestSync(uid));
    this.source = new ApiSource({
      ...deps,
      setPods: (pods) => {
        starts.observeAll(pods);
        podCopies?.listed(pods);
        state.config.set('api', pods);
        this.#reconnected();
      },
      changePods: (changes) => {
        podCopies?.changed(changes);
        for (const uid of changes.removed) starts.remove(uid);
        for (const pod of changes.present) starts.observe(pod);
        state.config.change('api', changes);
        this.#reconnected();
      },
    });
    this.mirrors = new MirrorPods({
      ...deps,
      pairOf: (name) => state.pods.getStaticPair(name),
      isEnding: (name) => state.queries.isPodForMirrorPodTerminatingByFullName(name),
    });
    this.writer = new StatusWriter({
      ...deps,
      statuses: state.statuses,
      podOf: (uid) => this.#apiCopy(uid),
      mayRun: (uid) => state.queries.couldHaveRunningContainers(uid),
      schema,
      observer: statusWriterMetrics(metrics),
      outlived: (mirror) => this.mirrors.replace(mirror),
    });
    api.onReturn?.(() => this.#reconnected());
    deps.objectChanges.on('changed', ({ object, namesOf }) => this.#syncUsers(object, namesOf));
  }

  /**
   * Until all manifests are read, a mirror pod whose static pod is missing must not be deleted: the
   * manifest may follow.
   */
  staticOrMirrorChanged(name: PodFullName): void {
    if (this.#state.config.allReady()) this.mirrors.reconcile(name);
    this.#writeMirrorStatus(name);
  }

  async statusesWritten(uids: readonly PodUid[], signal: AbortSignal): Promise<void> {
    for (const uid of uids) {
      this.writer.compare(uid);
      while (!this.writer.isWritten(uid)) await this.#deps.clock.sleep(statusPollMs, signal);
    }
  }

  [Symbol.dispose](): void {
    this.#syncRequests[Symbol.dispose]();
  }

  /**
   * Syncs the pods with volumes of this object. Otherwise the volumes would be updated with the
   * next regular sync of the pods, up to a minute later.
   */
  #syncUsers({ namespace, name }: ObjectName, namesOf: (pod: Pod) => ReadonlySet<string>): void {
    for (const pod of this.#state.pods.getPods()) {
      const isShown = pod.metadata.namespace === namespace && namesOf(pod).has(name);
      if (isShown) this.#syncRequests.request(pod.metadata.uid);
    }
  }

  #writeMirrorStatus(name: PodFullName): void {
    const { pods, queries } = this.#state;
    const { uid } = pods.getStaticPair(name).pod?.metadata ?? {};
    // A static pod that is desired again while it terminates gets a new mirror pod for its next
    // instance. The status of the terminating instance does not belong to that mirror pod.
    if (uid === undefined || queries.isPodTerminationRequested(uid)) return;
    this.writer.mirrored(uid);
  }

  /**
   * The pod as last read from the API server; undefined if the pod of this name there has another
   * UID. The status writer patches this object.
   */
  #apiCopy(uid: PodUid): Pod | undefined {
    const pod = this.#state.pods.getApiPod(uid);
    if (pod === undefined) return undefined;
    const copy = this.source.get(pod.metadata.name, pod.metadata.namespace);
    return copy?.metadata.uid === pod.metadata.uid ? copy : undefined;
  }

  #reconnected(): void {
    this.writer.reconnected();
    this.mirrors.reconnected();
  }
}
