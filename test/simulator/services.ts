import type {
  CgroupDriver,
  ContainerEventResponse,
  ContentMethods,
  Envelope,
  EventsMethods,
  ImageServiceMethods,
  RuntimeConfigResponse,
  RuntimeServiceMethods,
  StatusRequest,
  StatusResponse,
  UpdateContainerResourcesRequest,
} from '../../src/cri/index.ts';
import { GrpcError, type ServerStream, type Unary } from '../../src/protocols/grpc/index.ts';
import type { MessageInit } from '../../src/protocols/protobuf/index.ts';
import type { ContainerLifecycle } from './container-lifecycle.ts';
import type { CallContext, SimulatorContext } from './context.ts';
import type { Exec } from './exec.ts';
import type { ImageOperations } from './image-service.ts';
import type { Listing } from './listing.ts';
import { type ContainerRecord, containerState } from './records.ts';
import { failed, inContext, unknownMethod } from './refusals.ts';
import { mergeResources } from './resources.ts';
import type { SandboxLifecycle } from './sandbox-lifecycle.ts';
import type { Stats } from './stats.ts';
import { type Found, required } from './store.ts';

/**
 * The handlers of a gRPC service in the simulated runtime: they get complete requests, and optional
 * fields of their responses may be missing.
 */
export type Handlers<Methods> = {
  readonly [Name in keyof Methods]: Methods[Name] extends Unary<infer Request, infer Response>
    ? (request: Request, call: CallContext) => MessageInit<Response> | Promise<MessageInit<Response>>
    : Methods[Name] extends ServerStream<infer Request, infer Response>
      ? (request: Request, call: CallContext) => AsyncIterable<MessageInit<Response>>
      : never;
};

export interface RuntimeParts {
  readonly context: SimulatorContext;
  readonly sandboxes: SandboxLifecycle;
  readonly containers: ContainerLifecycle;
  readonly listing: Listing;
  readonly exec: Exec;
  readonly stats: Stats;
  readonly images: ImageOperations;
  readonly cgroupDriver: CgroupDriver;
  readonly runtimeHandlers: readonly string[];
}

export function runtimeHandlers(parts: RuntimeParts): Handlers<RuntimeServiceMethods> {
  const { context, listing, exec, stats } = parts;
  const { flavour } = context;
  return {
    ...sandboxHandlers(parts),
    ...containerHandlers(parts),
    version: () => ({
      version: '0.1.0',
      runtimeName: 'containerd',
      runtimeVersion: flavour.runtimeVersion,
      runtimeApiVersion: 'v1',
    }),
    status: (request) => runtimeStatus(parts, request),
    runtimeConfig: () => runtimeConfig(parts),
    updateRuntimeConfig: () => ({}),
    podSandboxStatus: (request) => listing.sandboxStatus(request),
    listPodSandbox: (request) => listing.listSandboxes(request),
    listContainers: (request) => listing.listContainers(request),
    containerStatus: (request) => listing.containerStatus(request),
    execSync: (request, call) => exec.execSync(request, call),
    exec: (request) => exec.exec(request),
    attach: (request) => exec.attach(request),
    portForward: (request) => exec.portForward(request),
    containerStats: (request) => stats.container(request),
    listContainerStats: (request) => stats.listContainers(request),
    podSandboxStats: (request) => stats.sandbox(request),
    listPodSandboxStats: (request) => stats.listSandboxes(request),
    getContainerEvents: (_request, call) => criEvents(context, call),
    ...unsupportedHandlers,
  };
}

export function imageHandlers({ images }: RuntimeParts): Handlers<ImageServiceMethods> {
  return {
    listImages: () => images.list(),
    streamImages: () => refuse(unknownMethod('StreamImages')),
    imageStatus: (request) => images.status(request),
    pullImage: (request, call) => images.pull(request, call),
    removeImage: (request) => images.remove(request),
    imageFsInfo: () => images.fsInfo(),
  };
}

export function eventHandlers({ context }: RuntimeParts): Handlers<EventsMethods> {
  return {
    publish({ topic, event }) {
      if (event === undefined) throw new GrpcError('INVALID_ARGUMENT', 'an event must have a payload');
      context.events.publishForeign(topic, event);
      return {};
    },
    subscribe: ({ filters }, call): AsyncIterable<MessageInit<Envelope>> =>
      context.events.subscribe(filters).items(call.signal),
  };
}

export function contentHandlers({ images }: RuntimeParts): Handlers<ContentMethods> {
  return {
    async *list() {
      yield images.arrivingContent();
    },
    listStatuses: () => images.ingests(),
  };
}

/** Handlers of methods that none of the simulated containerd versions supports. */
const unsupportedHandlers = {
  checkpointContainer: () =>
    refuse(new GrpcError('UNIMPLEMENTED', 'method CheckpointContainer not implemented')),
  listMetricDescriptors: () => refuse(unknownMethod('ListMetricDescriptors')),
  listPodSandboxMetrics: () => refuse(unknownMethod('ListPodSandboxMetrics')),
  streamPodSandboxes: () => refuse(unknownMethod('StreamPodSandboxes')),
  streamContainers: () => refuse(unknownMethod('StreamContainers')),
  streamContainerStats: () => refuse(unknownMethod('StreamContainerStats')),
  streamPodSandboxStats: () => refuse(unknownMethod('StreamPodSandboxStats')),
  streamPodSandboxMetrics: () => refuse(unknownMethod('StreamPodSandboxMetrics')),
} satisfies Partial<Handlers<RuntimeServiceMethods>>;

function sandboxHandlers({ context, sandboxes, listing }: RuntimeParts) {
  const find = (id: string) => listing.findSandbox(id);
  return {
    runPodSandbox: (request, call) => sandboxes.run(request, call),
    async stopPodSandbox({ podSandboxId }, call) {
      const record = present(context, find(podSandboxId), 'stop', `sandbox "${podSandboxId}"`);
      if (record !== undefined) await sandboxes.stop(record, call);
      return {};
    },
    async removePodSandbox({ podSandboxId }, call) {
      const record = present(context, find(podSandboxId), 'remove', `sandbox "${podSandboxId}"`);
      if (record !== undefined) await sandboxes.remove(record, call);
      return {};
    },
    updatePodSandboxResources({ podSandboxId }) {
      if (context.flavour.updateSandboxResources === 'unsupported') {
        throw unknownMethod('UpdatePodSandboxResources');
      }
      required(find(podSandboxId), 'failed to find sandbox');
      return {};
    },
  } satisfies Partial<Handlers<RuntimeServiceMethods>>;
}

function containerHandlers({ context, containers, listing }: RuntimeParts) {
  const find = (id: string) => listing.findContainer(id);
  return {
    createContainer: (request, call) => containers.create(request, call),
    async startContainer({ containerId }, call) {
      await containers.start(listing.container(containerId), call);
      return {};
    },
    async stopContainer({ containerId, timeout }, call) {
      const record = present(context, find(containerId), 'stop', `container "${containerId}"`);
      if (record !== undefined) await containers.stop(record, Number(timeout) * 1_000, call);
      return {};
    },
    async removeContainer({ containerId }, call) {
      const record = present(context, find(containerId), 'remove', `container "${containerId}"`);
      if (record !== undefined) await containers.remove(record, call);
      return {};
    },
    updateContainerResources: (request) => updateResources(find(request.containerId), request),
    reopenContainerLog({ containerId }) {
      const record = listing.container(containerId);
      if (containerState(record) !== 'CONTAINER_RUNNING') throw failed('container is not running');
      record.log?.reopen();
      return {};
    },
  } satisfies Partial<Handlers<RuntimeServiceMethods>>;
}

/**
 * Returns the sandbox or container to stop or remove. A missing one is an error if the simulated
 * containerd version returns an error for it; otherwise undefined is returned.
 */
function present<T>(
  { flavour, rules }: SimulatorContext,
  found: Found<T>,
  act: 'stop' | 'remove',
  what: string,
): T | undefined {
  const context = `an error occurred when try to find ${what}`;
  if (found.kind !== 'none') return required(found, context);
  if (rules.missingFails === `on-${act}`) throw failed(`${context}: gone`);
  if (act === 'stop' && flavour.stopMissing === 'not-found') return required(found, context);
  return undefined;
}

function updateResources(found: Found<ContainerRecord>, request: UpdateContainerResourcesRequest): object {
  const record = required(found, 'failed to find container');
  if (record.busy === 'removing') {
    throw inContext('failed to update resources', failed(`container "${record.id}" is in removing state`));
  }
  record.resources = mergeResources(record.resources, request.linux);
  return {};
}

function runtimeStatus(parts: RuntimeParts, { verbose }: StatusRequest): MessageInit<StatusResponse> {
  const { flavour, network } = parts.context;
  const networkCondition = network.ready
    ? { type: 'NetworkReady', status: true }
    : {
        type: 'NetworkReady',
        status: false,
        reason: 'NetworkPluginNotReady',
        message: 'Network plugin returns error: cni plugin not initialized',
      };
  const conditions = [{ type: 'RuntimeReady', status: true }, networkCondition];
  const info = verbose ? { config: '{}', golang: '"simulated"' } : {};
  if (flavour.statusDetails === 'few') return { status: { conditions }, info };
  return {
    status: { conditions: [...conditions, { type: 'ContainerdHasNoDeprecationWarnings', status: true }] },
    info,
    runtimeHandlers: ['', ...parts.runtimeHandlers].map((name) => ({
      name,
      features: { recursiveReadOnlyMounts: true, userNamespaces: true },
    })),
    features: { supplementalGroupsPolicy: true, userNamespacesHostNetwork: true },
  };
}

function runtimeConfig({ context, cgroupDriver }: RuntimeParts): MessageInit<RuntimeConfigResponse> {
  if (context.flavour.runtimeConfig === 'unsupported') throw unknownMethod('RuntimeConfig');
  return { linux: { cgroupDriver } };
}

function criEvents(
  context: SimulatorContext,
  call: CallContext,
): AsyncIterable<MessageInit<ContainerEventResponse>> {
  if (context.flavour.criEvents === 'supported') return context.events.subscribeCri().items(call.signal);
  return refuse(new GrpcError('UNIMPLEMENTED', 'method GetContainerEvents not implemented'));
}

function refuse(error: GrpcError): never {
  throw error;
}
