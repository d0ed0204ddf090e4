import {
  type ApiClient,
  type ApiObject,
  apiError,
  applyPatch,
  type Collection,
  type DeleteOptions,
  type ObjectRef,
  type Patch,
  PatchSchema,
} from '../../src/api/index.ts';
import type { PodStatus } from '../../src/kinds/index.ts';
import type { Clock } from '../../src/lib/index.ts';
import { type Pod, podUid } from '../../src/pods/index.ts';

export interface PodsCall {
  readonly verb: 'get' | 'create' | 'patch' | 'delete';
  readonly name: string;
  readonly body?: unknown;
}

type Failure = (call: PodsCall) => Error | undefined;

/**
 * The pods of a simulated API server, with the operations that status writers use. `watched` is the
 * state of the watch cache, which changes only when the test advances it.
 */
export class PodsApi implements Pick<ApiClient, 'get' | 'create' | 'patch' | 'delete'> {
  readonly pods = new Map<string, Pod>();
  readonly watched = new Map<string, Pod>();
  readonly calls: PodsCall[] = [];
  /** Called before every call; a returned error is thrown instead of the response. */
  failure: Failure = () => undefined;
  /** The duration of every call, in milliseconds. */
  latencyMs = 0;
  inFlight = 0;
  mostInFlight = 0;
  readonly #schema = new PatchSchema();
  #version = 100;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Creates a pod and delivers it to the watch immediately. */
  put(pod: Pod): Pod {
    const stored = this.#store(pod);
    this.watch();
    return stored;
  }

  /** Updates the watch cache to the current state. */
  watch(): void {
    for (const [name, pod] of this.pods) if (this.watched.get(name) !== pod) this.watched.set(name, pod);
    for (const name of this.watched.keys()) if (!this.pods.has(name)) this.watched.delete(name);
  }

  verbs(): readonly string[] {
    return this.calls.map(({ verb }) => verb);
  }

  async get<T extends ApiObject>(ref: ObjectRef, _options: object, signal: AbortSignal): Promise<T> {
    await this.#called({ verb: 'get', name: ref.name }, signal);
    return this.#find('get', ref.name) as ApiObject as T;
  }

  async create<T extends ApiObject>(_at: Collection, object: ApiObject, signal: AbortSignal): Promise<T> {
    const { name = '', namespace = '' } = object.metadata ?? {};
    await this.#called({ verb: 'create', name, body: object }, signal);
    if (this.pods.has(name)) throw refusal('create', name, 409, 'AlreadyExists');
    const { metadata, ...rest } = object as Pod;
    const uid = podUid(`api-${++this.#version}`);
    return this.#store({
      ...rest,
      metadata: { ...metadata, name, namespace, uid },
      status: {},
    }) as ApiObject as T;
  }

  async patch<T extends ApiObject>(ref: ObjectRef, patch: Patch, signal: AbortSignal): Promise<T> {
    await this.#called({ verb: 'patch', name: ref.name, body: patch.body }, signal);
    const pod = this.#find('patch', ref.name);
    const { metadata, status } = applyPatch(this.#schema, 'Pod', { metadata: {}, status: pod.status }, patch);
    const { uid, resourceVersion } = metadata as Pod['metadata'];
    const isSame = uid === pod.metadata.uid && resourceVersion === pod.metadata.resourceVersion;
    if (!isSame) throw refusal('patch', ref.name, 409, 'Conflict');
    return this.#store({ ...pod, status: status as PodStatus }) as ApiObject as T;
  }

  async delete(ref: ObjectRef, options: DeleteOptions, signal: AbortSignal): Promise<void> {
    await this.#called({ verb: 'delete', name: ref.name, body: options }, signal);
    const pod = this.#find('delete', ref.name);
    if (options.uid !== pod.metadata.uid) throw refusal('delete', ref.name, 409, 'Conflict');
    this.pods.delete(ref.name);
  }

  #store(pod: Pod): Pod {
    const resourceVersion = String(++this.#version);
    const stored = { ...pod, metadata: { ...pod.metadata, resourceVersion } };
    this.pods.set(pod.metadata.name, stored);
    return stored;
  }

  #find(verb: string, name: string): Pod {
    const pod = this.pods.get(name);
    if (pod === undefined) throw refusal(verb, name, 404, 'NotFound');
    return pod;
  }

  async #called(call: PodsCall, signal: AbortSignal): Promise<void> {
    this.calls.push(call);
    this.mostInFlight = Math.max(this.mostInFlight, ++this.inFlight);
    try {
      await this.#clock.sleep(this.latencyMs, signal);
    } finally {
      this.inFlight--;
    }
    const error = this.failure(call);
    if (error !== undefined) throw error;
  }
}

export function refusal(verb: string, name: string, status: number, reason = 'Refused'): Error {
  return apiError({ what: `${verb} pods/${name}`, status, apiStatus: { reason } });
}
