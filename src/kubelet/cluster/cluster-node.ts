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
import type { Node } from '../../kinds/index.ts';
import {
  type Clock,
  HintLatch,
  KubelingError,
  type Logger,
  LogOnce,
  type MetricRegistry,
  type Random,
  TypedEvents,
  untilAborted,
  withDeadline,
} from '../../lib/index.ts';
import {
  CsiNodePublisher,
  hostIps,
  NodeController,
  type NodeMachineInfo,
  type NodeSettings,
  NodeView,
} from '../../node/index.ts';
import {
  ApiPodCopies,
  ApiRuntimeClasses,
  BoundClaims,
  type ChangeDetection,
  CheckpointedObjects,
  type ClusterCopies,
  claimNamesOf,
  configMapNamesOf,
  makePodObjects,
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
import type { ResourceClaim } from '../../resources/index.ts';
import { followMirrors } from '../../status/mirror/index.ts';
import type { BackgroundLoops } from '../background.ts';
import type { ClusterLink, ClusterPods, ConnectedNode } from '../kubelet-deps.ts';
import type { KubeletControl, KubeletParts } from '../stages/control.ts';
import type { KubeletState } from '../stages/state.ts';
import { ClusterPodSync, type ObjectChanges } from './cluster-pod-sync.ts';
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
  /**
   * Closes connections on which nothing was received for some time: they may be broken without an
   * error.
   */
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
  /** Additional background loops, which run as long as the kubelet. */
  readonly extraLoops?: BackgroundLoops | undefined;
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
  readonly #view: NodeView;
  /** Raised when the status of the node may have changed. */
  readonly #nodeHints: HintLatch;
  readonly #objectChanges: ObjectChanges;
  #pods: ClusterPodSync | undefined;

  constructor(options: ClusterNodeOptions) {
    this.#options = options;
    const { clients, clock, random, logger, metrics, node } = options;
    const api = clients.main;
    const shared = { api, clock, random, logger };
    this.#nodeHints = new HintLatch(clock);
    this.#objectChanges = new TypedEvents((error, event) =>
      logger.error('Failed to handle change of an API object', error, { event }),
    );
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
    this.#view = new NodeView({ current: () => this.#watchedNode.current }, clock);
    this.#objects = createPodObjects(options, this.#view, this.#objectChanges);
    this.#claims = new BoundClaims({
      api,
      clock,
      onChange: (object) => this.#objectChanges.emit('changed', { object, namesOf: claimNamesOf }),
    });
    const { copies } = options;
    this.#podCopies = copies && new ApiPodCopies({ copies: copies.pods, clock, logger });
    this.#services = new Services({ ...shared, copies: copies?.services });
    this.#classes = new ApiRuntimeClasses(shared);
    this.#starts = new StartLatency(clock, metrics);
    this.#tokens = new Tokens({ ...shared, observer: tokenMetrics(metrics) });
    this.#csiNode = new CsiNodePublisher({
      ...shared,
      nodeName: node.name,
      node: () => this.#view.current(),
      initialized: () => this.hint(),
    });
    this.#watchedNode.onChange(() => this.#csiNode.nodeChanged());
    this.link = this.#createLink();
  }

  /** Calls the listener whenever the Node object has changed in the API. */
  onNodeChange(listener: () => void): Disposable {
    return this.#watchedNode.onChange(listener);
  }

  /** Updates the Node object soon, because the status of the node may have changed. */
  hint(): void {
    this.#nodeHints.raise();
  }

  /** Sends the queued events for at most this long and drops the rest. */
  async end(withinMs: number): Promise<void> {
    const deadline = { clock: this.#options.clock, ms: withinMs, what: 'tell the last events' };
    this.#pods?.[Symbol.dispose]();
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
      tokens,
      services: () => services.known(),
      runtimeClasses: this.#classes,
      secrets: { get: (namespace, name, signal) => requiredSecret(objects, namespace, name, signal) },
      serviceAccounts: new PodServiceAccounts({ api: clients.main, tokens }),
      journal: (journal) => this.#starts.journal(recordingJournal(journal, this.#recorder, clock)),
      nodeEvent: nodeEventRecorder(node.name, this.#recorder, clock),
      claimEvent: claimEventRecorder(this.#recorder, clock),
      volumeEvent: volumeEventRecorder(this.#recorder, clock),
      nodeIps: () => hostIps(this.#view.current() ?? {}),
      node: () => this.#view.current(),
      fetchNode: (signal) =>
        clients.main.get<Node>({ resource: apiResources.nodes, name: node.name }, {}, signal),
      resourceClaim: (namespace, name, signal) => fetchClaim(clients.main, { namespace, name }, signal),
      nodeChanged: () => this.hint(),
      connectPods: (state) => this.#connectPods(state),
      connectNode: (parts, control) => this.#connectNode(parts, control),
    };
  }

  #connectPods(state: KubeletState): ClusterPods {
    const { clients, clock, extraLoops } = this.#options;
    const pods = new ClusterPodSync(
      {
        ...this.#options,
        api: clients.main,
        nodeName: this.#options.node.name,
        node: () => this.#view.current(),
        starts: this.#starts,
        podCopies: this.#podCopies,
        objectChanges: this.#objectChanges,
        schema: this.#schema,
      },
      state,
    );
    this.#pods = pods;
    this.#tokens.events.on('renew-pod', ({ uid }) => state.requestSync(uid));
    return {
      staticOrMirrorChanged: (name) => pods.staticOrMirrorChanged(name),
      statusesWritten: (uids, signal) => pods.statusesWritten(uids, signal),
      loops: {
        restartable: {
          ...extraLoops?.restartable,
          'api source': pods.source,
          'secrets and config maps': this.#objects,
          claims: this.#claims,
          services: this.#services,
          'runtime classes': this.#classes,
          tokens: this.#tokens,
          'CSI drivers of the node': this.#csiNode,
          'watch of the node': { run: (signal) => this.#watchNode(signal) },
          ...this.#copyLoops(state),
          'mirror passes': { run: (signal) => followMirrors(clock, state, pods.mirrors, signal) },
        },
        critical: { ...extraLoops?.critical, 'status writer': pods.writer, 'mirror pods': pods.mirrors },
      },
    };
  }

  #connectNode(parts: KubeletParts, control: KubeletControl): ConnectedNode {
    const { clients, node, machine } = this.#options;
    const inputs = new NodeInputs(this.#options, { ...parts, control }, this.#csiNode);
    const controller = new NodeController({
      ...this.#options,
      settings: node,
      problems: new LogOnce(),
      api: clients.heartbeat,
      connections: { redial: () => clients.closeSilent() },
      view: this.#view,
      hints: this.#nodeHints,
      schema: this.#schema,
      recorder: { event: (event) => parts.state.node.event(event) },
      machine,
      resources: inputs,
      runtime: inputs,
      health: inputs,
      volumes: { inUse: () => parts.volumes.csi?.inUse(), reported: () => {} },
    });
    return {
      get images() {
        return controller.images;
      },
      loops: { restartable: {}, critical: { node: controller } },
    };
  }

  #copyLoops({ config }: KubeletState): BackgroundLoops['restartable'] {
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
}

/** Creates the ConfigMaps and Secrets of pods, persisted if the options say where. */
function createPodObjects(
  { clients, clock, random, logger, changeDetection, syncFrequencyMs, copies }: ClusterNodeOptions,
  view: NodeView,
  changes: ObjectChanges,
): PodObjects {
  const objects = makePodObjects(changeDetection, {
    api: clients.main,
    clock,
    random,
    logger,
    syncFrequencyMs,
    nodeAnnotations: () => view.current()?.metadata?.annotations,
    changed: ({ kind, ...object }) =>
      changes.emit('changed', { object, namesOf: kind === 'secret' ? secretNamesOf : configMapNamesOf }),
  });
  return copies === undefined
    ? objects
    : new CheckpointedObjects({ objects, copies: copies.objects, logger });
}

/**
 * Reads the ResourceClaim from the API server. A missing claim is OBJECT_NOT_FOUND, with the
 * message users know from the Go kubelet.
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
