import {
  type ApiClient,
  apiResources,
  claimEventRecorder,
  EventRecorder,
  eventMetrics,
  isApiCode,
  nodeEventRecorder,
  ObjectReflector,
  PatchSchema,
  recordingJournal,
  volumeEventRecorder,
} from '../../api/index.ts';
import type { CriClient } from '../../cri/index.ts';
import type { ContainerImage, Node } from '../../kinds/index.ts';
import {
  type Clock,
  KubelingError,
  type Logger,
  LogOnce,
  type MetricRegistry,
  type Random,
  untilAborted,
  withDeadline,
} from '../../lib/index.ts';
import {
  CsiNodePublisher,
  hostIps,
  NodeController,
  type NodeMachineInfo,
  type NodeSettings,
} from '../../node/index.ts';
import {
  ApiPodCopies,
  ApiRuntimeClasses,
  BoundClaims,
  type ChangeDetection,
  type ChangedObject,
  CheckpointedObjects,
  type ClusterCopies,
  claimNamesOf,
  configMapNamesOf,
  makePodObjects,
  type ObjectName,
  type PodObjects,
  PodServiceAccounts,
  requiredSecret,
  Services,
  StorageObjects,
  secretNamesOf,
  startFromCopies,
  Tokens,
  tokenMetrics,
} from '../../objects/index.ts';
import type { Pod, PodFullName, PodUid } from '../../pods/index.ts';
import type { ResourceClaim } from '../../resources/index.ts';
import { ApiSource } from '../../sources/index.ts';
import { followMirrors, MirrorPods } from '../../status/mirror/index.ts';
import { StatusWriter, statusWriterMetrics } from '../../status/writer/index.ts';
import type { BackgroundLoops } from '../background.ts';
import { KeyedThrottle } from '../keyed-throttle.ts';
import type { Kubelet } from '../kubelet.ts';
import type { ClusterLink } from '../kubelet-deps.ts';
import { NodeInputs, type NodeInputsOptions } from './node-inputs.ts';
import { StartLatency } from './start-latency.ts';

/**
 * The clients of the API server. Each has its own connections, so that one client cannot block
 * another.
 */
export interface ClusterClients {
  readonly main: ApiClient;
  readonly events: ApiClient;
  readonly heartbeat: ApiClient;
  /** Closes connections without traffic, which may be broken although no error was reported. */
  closeSilent(): void;
}

export interface ClusterNodeOptions extends Pick<NodeInputsOptions, 'capacity' | 'runtime'> {
  readonly clients: ClusterClients;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
  readonly cri: Pick<CriClient, 'listImages' | 'updateRuntimeConfig'>;
  readonly machine: NodeMachineInfo;
  readonly node: NodeSettings;
  readonly changeDetection: ChangeDetection;
  readonly syncFrequencyMs: number;
  /**
   * Where objects of the API are persisted, so that the kubelet can start without the API server;
   * not persisted by default.
   */
  readonly copies?: ClusterCopies | undefined;
  /** Further loops that run as long as the kubelet. */
  readonly extraLoops?: BackgroundLoops | undefined;
}

const syncIntervalMs = 1_000;
const statusPollMs = 20;

/** The controllers of the cluster connection that exist once the kubelet is created. */
interface Controllers {
  readonly source: ApiSource;
  readonly writer: StatusWriter;
  readonly mirrors: MirrorPods;
  readonly node: NodeController;
  readonly kubelet: Kubelet;
}

/**
 * Connects a kubelet to its cluster: reads its pods and their objects from the API server, and
 * writes statuses, mirror pods, events, tokens and the Node object.
 */
export class ClusterNode {
  readonly link: ClusterLink;
  readonly #options: ClusterNodeOptions;
  readonly #recorder: EventRecorder;
  readonly #objects: PodObjects;
  readonly #podCopies: ApiPodCopies | undefined;
  readonly #claims: BoundClaims;
  readonly #services: Services;
  readonly #classes: ApiRuntimeClasses;
  readonly #tokens: Tokens;
  readonly #csiNode: CsiNodePublisher;
  readonly #starts: StartLatency;
  readonly #schema = new PatchSchema();
  readonly #watchedNode: ObjectReflector<Node>;
  /** Limits how often an object that changes constantly syncs the pods that use it. */
  readonly #syncRequests: KeyedThrottle<PodUid>;
  #controllers: Controllers | undefined;

  constructor(options: ClusterNodeOptions) {
    this.#options = options;
    const { clients, clock, random, logger, metrics, node, syncFrequencyMs } = options;
    const api = clients.main;
    this.#syncRequests = new KeyedThrottle(clock, syncIntervalMs, (uid) =>
      this.#controllers?.kubelet.state.requestSync(uid),
    );
    const shared = { api, clock, random, logger };
    this.#recorder = new EventRecorder({
      client: clients.events,
      clock,
      random,
      logger,
      nodeName: node.name,
      onOutcome: eventMetrics(metrics),
    });
    this.#watchedNode = new ObjectReflector<Node>({
      client: api,
      clock,
      random,
      logger,
      ref: { resource: apiResources.nodes, name: node.name },
    });
    const nodeAnnotations = () => this.#node()?.metadata?.annotations;
    const objects = makePodObjects(options.changeDetection, {
      ...shared,
      syncFrequencyMs,
      nodeAnnotations,
      changed: (object) => this.#objectChanged(object),
    });
    const { copies } = options;
    this.#objects =
      copies === undefined ? objects : new CheckpointedObjects({ objects, copies: copies.objects, logger });
    this.#claims = new BoundClaims({
      api,
      clock,
      onChange: (claim) => this.#syncUsers(claim, claimNamesOf),
    });
    this.#podCopies = copies && new ApiPodCopies({ copies: copies.pods, clock, logger });
    this.#services = new Services({ ...shared, copies: copies?.services });
    this.#classes = new ApiRuntimeClasses(shared);
    this.#starts = new StartLatency(clock, metrics);
    this.#tokens = new Tokens({ ...shared, observer: tokenMetrics(metrics) });
    this.#csiNode = new CsiNodePublisher({
      ...shared,
      nodeName: node.name,
      node: () => this.#node(),
      initialized: () => this.hint(),
    });
    this.#watchedNode.onChange(() => this.#csiNode.nodeChanged());
    this.link = this.#createLink();
  }

  /**
   * Creates the controllers that connect the kubelet to its cluster; called before the kubelet
   * runs.
   */
  attach(kubelet: Kubelet): void {
    const { clients, clock, random, logger, metrics, node } = this.#options;
    const shared = { clock, random, logger, api: clients.main };
    const source = new ApiSource({
      ...shared,
      nodeName: node.name,
      setPods: (pods) => {
        this.#starts.observeAll(pods);
        this.#podCopies?.listed(pods);
        kubelet.state.config.set('api', pods);
        this.#reconnected();
      },
      changePods: (changes) => {
        this.#podCopies?.changed(changes);
        for (const uid of changes.removed) this.#starts.remove(uid);
        for (const pod of changes.present) this.#starts.observe(pod);
        kubelet.state.config.change('api', changes);
        this.#reconnected();
      },
    });
    const writer = new StatusWriter({
      ...shared,
      statuses: kubelet.state.statuses,
      podOf: (uid) => apiCopy(kubelet, source, uid),
      mayRun: (uid) => kubelet.state.queries.couldHaveRunningContainers(uid),
      schema: this.#schema,
      observer: statusWriterMetrics(metrics),
      outlived: (mirror) => this.#controllers?.mirrors.replace(mirror),
    });
    const mirrors = new MirrorPods({
      ...shared,
      node: () => this.#node(),
      pairOf: (name) => kubelet.state.pods.getStaticPair(name),
      isEnding: (name) => kubelet.state.queries.isPodForMirrorPodTerminatingByFullName(name),
    });
    this.#controllers = { source, writer, mirrors, kubelet, node: this.#createNodeController(kubelet) };
    clients.main.onReturn?.(() => this.#reconnected());
    this.#tokens.events.on('renew-pod', ({ uid }) => kubelet.state.requestSync(uid));
  }

  /** Calls the listener whenever the Node object has changed in the API. */
  onNodeChange(listener: () => void): Disposable {
    return this.#watchedNode.onChange(listener);
  }

  /** The images on the node at the last listing, the largest first. */
  get images(): readonly ContainerImage[] {
    return this.#controllers?.node.images ?? [];
  }

  /** Updates the Node object soon, because the status of the node may have changed. */
  hint(): void {
    this.#controllers?.node.hint();
  }

  /** Sends the queued events for at most this long and drops the rest. */
  async end(withinMs: number): Promise<void> {
    const deadline = { clock: this.#options.clock, ms: withinMs, what: 'tell the last events' };
    this.#syncRequests[Symbol.dispose]();
    const never = new AbortController().signal;
    await withDeadline(deadline, (signal) => this.#recorder.drained(signal), never).catch(() => {});
    await this.#recorder[Symbol.asyncDispose]();
    await this.#watchedNode[Symbol.asyncDispose]();
  }

  #createLink(): ClusterLink {
    const { clients, clock, node } = this.#options;
    const [objects, tokens, services] = [this.#objects, this.#tokens, this.#services];
    return {
      objects,
      claims: this.#claims,
      storage: new StorageObjects(clients.main),
      csiNode: this.#csiNode,
      volumesChanged: () => this.hint(),
      devicesChanged: () => this.hint(),
      pressuresChanged: () => this.hint(),
      tokens,
      services: () => services.known(),
      runtimeClasses: this.#classes,
      secrets: { get: (namespace, name, signal) => requiredSecret(objects, namespace, name, signal) },
      serviceAccounts: new PodServiceAccounts({ api: clients.main, tokens }),
      journal: (journal) => this.#starts.journal(recordingJournal(journal, this.#recorder, clock)),
      nodeEvent: nodeEventRecorder(node.name, this.#recorder, clock),
      claimEvent: claimEventRecorder(this.#recorder, clock),
      volumeEvent: volumeEventRecorder(this.#recorder, clock),
      nodeIps: () => hostIps(this.#node() ?? {}),
      node: () => this.#node(),
      fetchNode: (signal) =>
        clients.main.get<Node>({ resource: apiResources.nodes, name: node.name }, {}, signal),
      staticChanged: (name) => this.#syncMirror(name),
      resourceClaim: (namespace, name, signal) => fetchClaim(clients.main, { namespace, name }, signal),
      nodeChanged: () => this.hint(),
      statusesWritten: (uids, signal) => this.#statusesWritten(uids, signal),
      loops: () => this.#loops(),
    };
  }

  async #statusesWritten(uids: readonly PodUid[], signal: AbortSignal): Promise<void> {
    const { writer } = this.#controllers ?? {};
    for (const uid of uids) {
      writer?.compare(uid);
      while (writer?.isWritten(uid) === false) await this.#options.clock.sleep(statusPollMs, signal);
    }
  }

  /**
   * Syncs the pods with volumes of this object. Without it they would observe the change with their
   * next regular sync, up to a minute later.
   */
  #objectChanged({ kind, namespace, name }: ChangedObject): void {
    this.#syncUsers({ namespace, name }, kind === 'secret' ? secretNamesOf : configMapNamesOf);
  }

  #syncUsers({ namespace, name }: ObjectName, namesOf: (pod: Pod) => ReadonlySet<string>): void {
    const { kubelet } = this.#controllers ?? {};
    for (const pod of kubelet?.state.pods.getPods() ?? []) {
      const isShown = pod.metadata.namespace === namespace && namesOf(pod).has(name);
      if (isShown) this.#syncRequests.request(pod.metadata.uid);
    }
  }

  #createNodeController(kubelet: Kubelet): NodeController {
    const { clients, node, machine } = this.#options;
    const inputs = new NodeInputs(this.#options, kubelet, this.#csiNode);
    return new NodeController({
      ...this.#options,
      settings: node,
      problems: new LogOnce(),
      api: clients.heartbeat,
      connections: { redial: () => clients.closeSilent() },
      watched: { current: () => this.#watchedNode.current },
      schema: this.#schema,
      recorder: { event: (event) => kubelet.state.node.event(event) },
      machine,
      resources: inputs,
      runtime: inputs,
      health: inputs,
      volumes: { inUse: () => kubelet.volumes.csi?.inUse(), reported: () => {} },
    });
  }

  #loops(): BackgroundLoops {
    if (this.#controllers === undefined) return { restartable: {}, critical: {} };
    const { source, writer, mirrors, node, kubelet } = this.#controllers;
    const { extraLoops } = this.#options;
    return {
      restartable: {
        ...extraLoops?.restartable,
        'api source': source,
        'secrets and config maps': this.#objects,
        claims: this.#claims,
        services: this.#services,
        'runtime classes': this.#classes,
        tokens: this.#tokens,
        'CSI drivers of the node': this.#csiNode,
        'watch of the node': { run: (signal) => this.#watchNode(signal) },
        ...this.#copyLoops(kubelet),
        'mirror passes': {
          run: (signal) => followMirrors(this.#options.clock, kubelet.state, mirrors, signal),
        },
      },
      critical: { ...extraLoops?.critical, 'status writer': writer, 'mirror pods': mirrors, node },
    };
  }

  #copyLoops({ state: { config } }: Kubelet): BackgroundLoops['restartable'] {
    const { clock, logger } = this.#options;
    const [kept, objects] = [this.#podCopies, this.#objects];
    if (kept === undefined || !(objects instanceof CheckpointedObjects)) return {};
    const retainReferred = () => objects.retainReferred();
    return {
      'copies of pods': kept,
      'start from copies': {
        run: async (signal) => {
          await startFromCopies({ clock, logger, copies: kept, config, retainReferred }, signal);
          await untilAborted(signal);
        },
      },
    };
  }

  async #watchNode(signal: AbortSignal): Promise<void> {
    this.#watchedNode.start();
    try {
      await untilAborted(signal);
    } finally {
      await this.#watchedNode.stop();
    }
  }

  /**
   * The newest known version of the Node object: written by this kubelet or received by the watch.
   */
  #node(): Node | undefined {
    return this.#controllers?.node.node.current() ?? this.#watchedNode.current;
  }

  /**
   * Until all manifests are read, a mirror pod whose static pod is missing must not be deleted: the
   * manifest may follow.
   */
  #syncMirror(name: PodFullName): void {
    const { mirrors, kubelet } = this.#controllers ?? {};
    if (kubelet?.state.config.allReady() === true) mirrors?.reconcile(name);
    this.#writeMirrorStatus(name);
  }

  #writeMirrorStatus(name: PodFullName): void {
    const { kubelet, writer } = this.#controllers ?? {};
    const { uid } = kubelet?.state.pods.getStaticPair(name).pod?.metadata ?? {};
    // A terminating pod that is desired again gets a new mirror pod for its next instance; this
    // status does not belong to it.
    if (uid === undefined || kubelet?.state.queries.isPodTerminationRequested(uid) === true) return;
    writer?.mirrored(uid);
  }

  #reconnected(): void {
    this.#controllers?.writer.reconnected();
    this.#controllers?.mirrors.reconnected();
  }
}

/**
 * The pod as last read from the API server; undefined if it has another UID there. The status
 * writer patches this object.
 */
function apiCopy(kubelet: Kubelet, source: ApiSource, uid: PodUid): Pod | undefined {
  const pod = kubelet.state.pods.getApiPod(uid);
  if (pod === undefined) return undefined;
  const copy = source.get(pod.metadata.name, pod.metadata.namespace);
  return copy?.metadata.uid === pod.metadata.uid ? copy : undefined;
}

/**
 * Reads the claim from the API server. A missing claim is OBJECT_NOT_FOUND, with the message users
 * know from the Go kubelet.
 */
async function fetchClaim(
  api: Pick<ApiClient, 'get'>,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<ResourceClaim> {
  const resource = apiResources.resourceClaims;
  try {
    return await api.get<ResourceClaim>({ resource, namespace, name }, {}, signal);
  } catch (error) {
    if (!isApiCode(error, 'API_NOT_FOUND')) throw error;
    const what = `${resource.plural}.${resource.group} ${JSON.stringify(name)}`;
    throw new KubelingError('OBJECT_NOT_FOUND', `${what} not found`);
  }
}
