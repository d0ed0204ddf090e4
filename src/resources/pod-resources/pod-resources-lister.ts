import type { Container } from '../../kinds/index.ts';
import type { Clock, MetricRegistry } from '../../lib/index.ts';
import { initContainersOf, isSidecar, type Pod, type PodUid } from '../../pods/index.ts';
import { GrpcError, type ServiceAdder } from '../../protocols/grpc/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';
import {
  type AllocatableResourcesResponse,
  type ContainerDevices,
  type ContainerMemory,
  type ContainerResources,
  type DynamicResource,
  type PodResources,
  PodResourcesLister,
} from './gen/pod-resources.ts';

/** The allocated devices by resource, with their NUMA nodes. */
export type ListedDevices = readonly {
  readonly resource: string;
  readonly id: string;
  readonly numaNodes: readonly number[];
}[];

export type ListedMemory = readonly {
  readonly type: string;
  readonly bytes: bigint;
  readonly numaNodes: readonly number[];
}[];

/** The prepared devices of the resource claims of a container. */
export type ListedClaims = readonly {
  readonly name: string;
  readonly namespace: string;
  /** The prepared devices by driver. */
  readonly drivers: ReadonlyMap<
    string,
    readonly {
      readonly poolName: string;
      readonly deviceName: string;
      readonly shareId: string | undefined;
      readonly cdiDeviceIds: readonly string[];
    }[]
  >;
}[];

/** The sources of the allocated resources; undefined if a manager is disabled. */
export interface GivenResources {
  readonly devices?: GivenOut<ListedDevices> | undefined;
  /** The numbers of the exclusive CPUs. */
  readonly cpus?: GivenOut<readonly number[]> | undefined;
  readonly memory?: GivenOut<ListedMemory> | undefined;
  readonly claims?: { of(pod: Pod, container: Container): ListedClaims } | undefined;
}

export interface GivenOut<Share> {
  of(uid: PodUid, container: string): Share;
  allocatable(): Share;
}

export interface PodResourcesDeps {
  readonly clock: Clock;
  readonly pods: {
    active(): readonly Pod[];
    all(): readonly Pod[];
    find(namespace: string, name: string): Pod | undefined;
  };
  readonly given: () => GivenResources;
  readonly observer: PodResourcesObserver;
}

const perSecond = 100;
const burst = 10;

/** Serves the PodResources API. */
export function servePodResources(server: ServiceAdder, deps: PodResourcesDeps): void {
  const { pods, given, observer } = deps;
  const rate = new CallRate(deps.clock);
  const ask = <Answer>(
    version: string,
    method: 'list' | 'get' | 'get_allocatable' | undefined,
    answer: () => Answer,
  ): Promise<Answer> => {
    if (!rate.take()) return Promise.reject(new GrpcError('RESOURCE_EXHAUSTED', 'rejected by rate limit'));
    observer.asked(version, method);
    try {
      return Promise.resolve(answer());
    } catch (error) {
      if (method !== undefined) observer.failed(version, method);
      return Promise.reject(error);
    }
  };
  server.add(PodResourcesLister, {
    list: () =>
      ask('v1', 'list', () => ({ podResources: pods.active().map((pod) => resourcesOf(pod, given())) })),
    getAllocatableResources: () => ask('v1', 'get_allocatable', () => allocatableOf(given())),
    get: ({ podName, podNamespace }) =>
      ask('v1', 'get', () => {
        const pod = pods.find(podNamespace, podName);
        if (pod === undefined)
          throw new GrpcError('UNKNOWN', `pod ${podName} in namespace ${podNamespace} not found`);
        return { podResources: resourcesOf(pod, given()) };
      }),
  });
  // The v1alpha1 messages are a subset of v1 with the same field numbers.
  const first = {
    fullName: 'v1alpha1.PodResourcesLister',
    methods: { list: PodResourcesLister.methods.list },
  };
  server.add(
    first as unknown as typeof PodResourcesLister,
    {
      list: () =>
        ask('v1alpha1', undefined, () => ({
          podResources: pods.all().map((pod) => devicesOnly(pod, given())),
        })),
    } as never,
  );
}

function resourcesOf(pod: Pod, given: GivenResources): MessageInit<PodResources> {
  const { uid, name, namespace } = pod.metadata;
  const containers = [...initContainersOf(pod).filter(isSidecar), ...pod.spec.containers].map(
    (container): MessageInit<ContainerResources> => ({
      name: container.name,
      devices: (given.devices?.of(uid, container.name) ?? []).flatMap(deviceEntries),
      cpuIds: (given.cpus?.of(uid, container.name) ?? []).map(BigInt),
      memory: (given.memory?.of(uid, container.name) ?? []).map(memoryEntry),
      dynamicResources: (given.claims?.of(pod, container) ?? []).map(claimEntry),
    }),
  );
  return { name, namespace, containers };
}

function devicesOnly(pod: Pod, { devices }: GivenResources): MessageInit<PodResources> {
  const { uid, name, namespace } = pod.metadata;
  const containers = pod.spec.containers.map((container) => ({
    name: container.name,
    devices: (devices?.of(uid, container.name) ?? []).flatMap(deviceEntries),
  }));
  return { name, namespace, containers };
}

function allocatableOf({ devices, cpus, memory }: GivenResources): MessageInit<AllocatableResourcesResponse> {
  return {
    devices: (devices?.allocatable() ?? []).flatMap(deviceEntries),
    cpuIds: (cpus?.allocatable() ?? []).map(BigInt),
    memory: (memory?.allocatable() ?? []).map(memoryEntry),
  };
}

/** A device with several NUMA nodes has one entry per NUMA node. */
function deviceEntries({
  resource: resourceName,
  id,
  numaNodes,
}: ListedDevices[number]): readonly MessageInit<ContainerDevices>[] {
  const entry = { resourceName, deviceIds: [id] };
  if (numaNodes.length === 0) return [entry];
  return numaNodes.map((node) => ({ ...entry, topology: topologyOf([node]) }));
}

function memoryEntry({ type, bytes, numaNodes }: ListedMemory[number]): MessageInit<ContainerMemory> {
  return { memoryType: type, size: bytes, topology: topologyOf(numaNodes) };
}

function claimEntry({ name, namespace, drivers }: ListedClaims[number]): MessageInit<DynamicResource> {
  const claimResources = [...drivers].flatMap(([driverName, devices]) =>
    devices.map(({ poolName, deviceName, shareId, cdiDeviceIds }) => ({
      driverName,
      poolName,
      deviceName,
      shareId,
      cdiDevices: cdiDeviceIds.map((id) => ({ name: id })),
    })),
  );
  return { claimName: name, claimNamespace: namespace, claimResources };
}

function topologyOf(numaNodes: readonly number[]) {
  return { nodes: numaNodes.map((node) => ({ ID: BigInt(node) })) };
}

/** A token bucket that limits requests; a request is rejected when the bucket is empty. */
class CallRate {
  readonly #clock: Clock;
  #tokens = burst;
  #atMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#atMs = clock.monotonicMs();
  }

  take(): boolean {
    const nowMs = this.#clock.monotonicMs();
    this.#tokens = Math.min(burst, this.#tokens + ((nowMs - this.#atMs) * perSecond) / 1_000);
    this.#atMs = nowMs;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}

type Method = 'list' | 'get' | 'get_allocatable';

/** Observes each PodResources call. Never throws. */
export interface PodResourcesObserver {
  /** `method` is undefined for v1alpha1 calls, which are not counted by method. */
  asked(version: string, method: Method | undefined): void;
  failed(version: string, method: Method): void;
}

const methods: readonly Method[] = ['list', 'get', 'get_allocatable'];

/** Registers the metrics of the PodResources API; call once per registry. */
export function podResourcesMetrics(registry: MetricRegistry): PodResourcesObserver {
  const counter = (name: string, help: string) =>
    registry.counter({
      name: `kubelet_pod_resources_endpoint_${name}`,
      help,
      labels: ['server_api_version'],
    });
  const total = counter('requests_total', 'Pod resources API requests, by version.');
  const requests = new Map(
    methods.map((method) => [
      method,
      counter(`requests_${method}`, `Pod resources API requests of ${method}.`),
    ]),
  );
  const errors = new Map(
    methods.map((method) => [
      method,
      counter(`errors_${method}`, `Failed pod resources API requests of ${method}.`),
    ]),
  );
  return {
    asked: (version, method) => {
      const labels = { server_api_version: version };
      total.with(labels).inc();
      if (method !== undefined) requests.get(method)?.with(labels).inc();
    },
    failed: (version, method) => errors.get(method)?.with({ server_api_version: version }).inc(),
  };
}
