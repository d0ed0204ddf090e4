import {
  type ApiClient,
  type ApiObject,
  apiError,
  apiResources,
  applyPatch,
  type ObjectRef,
  objectPath,
  type Patch,
  PatchSchema,
} from '../../src/api/index.ts';
import type { Node } from '../../src/kinds/index.ts';
import { collectLogs, HintLatch, seededRandom } from '../../src/lib/index.ts';
import { LogOnce } from '../../src/lib/log-once.ts';
import type {
  Lease,
  MachineCapacity,
  NodeControllerDeps,
  NodeEventInput,
  NodeImageFacts,
  NodePressure,
  NodeSettings,
  RuntimeFacts,
} from '../../src/node/index.ts';
import { NodeView } from '../../src/node/index.ts';
import { VirtualClock } from './virtual-clock.ts';

export interface ApiCall {
  readonly verb: 'get' | 'create' | 'update' | 'patch';
  readonly path: string;
  readonly body?: unknown;
  readonly atMs: number;
}

const schema = new PatchSchema();

/**
 * Node and Lease objects in memory, as an API server would store them; calls can be made to fail.
 */
export class NodeApi {
  readonly calls: ApiCall[] = [];
  readonly objects = new Map<string, ApiObject>();
  /** Called before each call; a returned error is thrown, and the call has no effect. */
  refuse: (call: ApiCall) => Error | undefined = () => undefined;
  /**
   * Called after each call; a returned error is thrown instead of the response, although the call
   * had its effect.
   */
  lose: (call: ApiCall) => Error | undefined = () => undefined;
  /** The names of fields that the server drops from requests. */
  forgetful: (object: ApiObject) => ApiObject = (object) => object;
  #version = 100;
  #uids = 0;
  readonly #clock: VirtualClock;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  get client(): Pick<ApiClient, 'get' | 'create' | 'update' | 'patch'> {
    return {
      get: async <T extends ApiObject>(ref: ObjectRef) =>
        this.#call('get', objectPath(ref), () => this.#found(ref)) as T,
      create: async <T extends ApiObject>(at: Omit<ObjectRef, 'name'>, object: ApiObject) => {
        const ref = { ...at, name: object.metadata?.name ?? '' };
        return this.#call('create', objectPath(ref), () => this.#create(ref, object), object) as T;
      },
      update: async <T extends ApiObject>(ref: ObjectRef, object: ApiObject) =>
        this.#call('update', objectPath(ref), () => this.#update(ref, object), object) as T,
      patch: async <T extends ApiObject>(ref: ObjectRef, patch: Patch) =>
        this.#call('patch', objectPath(ref), () => this.#patch(ref, patch), patch.body) as T,
    };
  }

  node(name = 'n1'): Node | undefined {
    return this.objects.get(objectPath({ resource: apiResources.nodes, name })) as Node | undefined;
  }

  lease(name = 'n1'): Lease | undefined {
    const ref = { resource: apiResources.leases, namespace: 'kube-node-lease', name };
    return this.objects.get(objectPath(ref)) as Lease | undefined;
  }

  /** Changes an object as another client would. */
  put<T extends ApiObject>(resource: ObjectRef['resource'], object: T): void {
    const ref = { resource, namespace: object.metadata?.namespace, name: object.metadata?.name ?? '' };
    this.objects.set(
      objectPath(ref),
      this.#stored({ ...object, metadata: { uid: this.#uid(), ...object.metadata } }),
    );
  }

  remove(name = 'n1'): void {
    this.objects.delete(objectPath({ resource: apiResources.nodes, name }));
  }

  count(verb: ApiCall['verb'], part = ''): number {
    return this.calls.filter((call) => call.verb === verb && call.path.includes(part)).length;
  }

  last(verb: ApiCall['verb'], part = ''): ApiCall | undefined {
    return this.calls.findLast((call) => call.verb === verb && call.path.includes(part));
  }

  #call(verb: ApiCall['verb'], path: string, work: () => ApiObject, body?: unknown): ApiObject {
    const call = { verb, path, body, atMs: this.#clock.monotonicMs() };
    this.calls.push(call);
    const refusal = this.refuse(call);
    if (refusal !== undefined) throw refusal;
    const response = structuredClone(work());
    const loss = this.lose(call);
    if (loss !== undefined) throw loss;
    return response;
  }

  #found(ref: ObjectRef): ApiObject {
    const object = this.objects.get(objectPath({ ...ref, subresource: undefined }));
    if (object === undefined) throw refusal(404, `${ref.name} not found`);
    return object;
  }

  #create(ref: ObjectRef, object: ApiObject): ApiObject {
    if (this.objects.has(objectPath(ref))) throw refusal(409, `${ref.name} already exists`);
    this.put(ref.resource, this.forgetful(structuredClone(object)));
    return this.#found(ref);
  }

  #update(ref: ObjectRef, object: ApiObject): ApiObject {
    const before = this.#found(ref);
    if (object.metadata?.resourceVersion !== before.metadata?.resourceVersion) {
      throw refusal(409, 'the object has been modified');
    }
    this.put(ref.resource, structuredClone(object));
    return this.#found(ref);
  }

  #patch(ref: ObjectRef, patch: Patch): ApiObject {
    const before = this.#found(ref);
    const { metadata } = patch.body as { readonly metadata?: { readonly uid?: string } };
    if (metadata?.uid !== undefined && metadata.uid !== before.metadata?.uid)
      throw refusal(409, 'another uid');
    const after = applyPatch(schema, ref.resource.kind, before as never, structuredClone(patch));
    this.put(ref.resource, this.forgetful(after as ApiObject));
    return this.#found(ref);
  }

  #stored(object: ApiObject): ApiObject {
    return structuredClone({
      ...object,
      metadata: { ...object.metadata, resourceVersion: `${this.#version++}` },
    });
  }

  #uid(): string {
    return `uid-${++this.#uids}`;
  }
}

export function refusal(status: number, message: string): Error {
  return apiError({ what: 'ask', status, apiStatus: { message } });
}

export const plainSettings: NodeSettings = {
  name: 'n1',
  hostname: 'n1',
  register: 'self',
  recreation: 're-register',
  labels: {},
  taints: [],
  providerId: '',
  cloudProvider: '',
  ips: [],
  attachDetach: 'controller',
  kubeletPort: () => 10250,
  kubeletVersion: 'v1.36.4',
  architecture: 'amd64',
  maxPods: 110,
  reserved: [],
  reservedCpus: 0,
  hardEviction: {},
  localStorage: 'counted',
  updateFrequencyMs: 10_000,
  reportFrequencyMs: 300_000,
  leaseDurationSeconds: 40,
  maxImages: 50,
  declaredFeatures: [],
};

const gi = 1024 ** 3;

/** A simulated machine with a runtime in the state that a test sets. */
export class NodeWorld {
  readonly clock = new VirtualClock();
  readonly api = new NodeApi(this.clock);
  readonly logs = collectLogs(this.clock);
  readonly events: NodeEventInput[] = [];
  readonly files = new Map<string, string>([
    ['/etc/machine-id', 'machine\n'],
    ['/proc/sys/kernel/random/boot_id', 'boot-1\n'],
    ['/etc/os-release', 'NAME=x\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'],
    ['/proc/net/route', 'Iface\tDestination\neth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n'],
  ]);
  addresses = [
    { interface: 'lo', address: '127.0.0.1' },
    { interface: 'eth0', address: '192.168.1.5' },
    { interface: 'eth0', address: 'fd00::5' },
  ];
  names: Readonly<Record<string, readonly string[]>> = {};
  capacity: MachineCapacity | undefined = {
    milliCpu: 4_000,
    memory: 8 * gi,
    ephemeralStorage: 100 * gi,
    hugePages: new Map(),
    swap: 0,
  };
  runtime: RuntimeFacts | undefined = {
    name: 'containerd',
    version: '2.1.0',
    handlers: [],
    supplementalGroupsPolicy: true,
  };
  images: readonly NodeImageFacts[] = [];
  problems: readonly string[] = [];
  pressures = new Set<NodePressure>();
  redials = 0;
  runtimeChecks = 0;
  /** The number of checks of the runtime's state. */
  looks = 0;
  cidrs: (readonly string[])[] = [];
  onCheck: () => void = () => {};
  readonly hints = new HintLatch(this.clock);
  /** The Node in the watch cache: undefined by default, as at the start of a process. */
  watched: () => Node | undefined = () => undefined;

  deps(settings: Partial<NodeSettings> = {}): NodeControllerDeps {
    return {
      settings: { ...plainSettings, ...settings },
      clock: this.clock,
      random: seededRandom(7),
      logger: this.logs.logger,
      problems: new LogOnce(),
      api: this.api.client,
      connections: { redial: () => void this.redials++ },
      view: new NodeView({ current: () => this.watched() }, this.clock),
      hints: this.hints,
      schema,
      recorder: { event: (event) => void this.events.push(event) },
      machine: {
        read: async (path) => this.files.get(path),
        addresses: () => this.addresses,
        lookup: async (name) => this.names[name] ?? Promise.reject(new Error('the name cannot be resolved')),
        kernelRelease: () => '6.1.0',
      },
      resources: { capacity: () => this.capacity },
      runtime: {
        check: async () => {
          this.runtimeChecks++;
          this.onCheck();
        },
        facts: () => this.runtime,
        images: async () => this.images,
        usePodCidrs: async (cidrs) => void this.cidrs.push(cidrs),
      },
      health: {
        problems: () => {
          this.looks++;
          return this.problems;
        },
        pressures: () => this.pressures,
      },
    };
  }

  get reasons(): readonly string[] {
    return this.events.map(({ reason }) => reason);
  }
}

export function conditionOf(node: Node | undefined, type: string) {
  return node?.status?.conditions?.find((condition) => condition.type === type);
}
