import assert from 'node:assert/strict';
import type { ApiResource, JsonObject, PatchKind } from '../../src/api/index.ts';
import { apiResources } from '../../src/api/index.ts';
import { collectLogs, seededRandom } from '../../src/lib/index.ts';
import {
  type ApiCall,
  type ApiResponse,
  type ApiUser,
  type Catalogue,
  createCatalogue,
  type Durability,
  LocalApi,
  type ObjectList,
  type ResourceStrategy,
  type ResourceVerb,
  type ResourceView,
  type ServedWatchEvent,
  StatusError,
  type StorageLimits,
  type StoredObject,
  serverResources,
  VersionedStore,
} from '../../src/local-api/api/index.ts';
import { plainRules } from '../simulator/api/plain-rules.ts';
import { adminUser } from './api-users.ts';
import { noDurability } from './no-durability.ts';
import { VirtualClock } from './virtual-clock.ts';

export interface LocalApiRigOptions {
  readonly rules?: Readonly<Record<string, ResourceStrategy>>;
  readonly views?: Readonly<Record<string, ResourceView>>;
  readonly durability?: Durability;
  readonly store?: VersionedStore;
  readonly historyLimit?: number;
  readonly maxWaiting?: number;
  readonly storageLimits?: StorageLimits;
}

export interface CallOptions {
  readonly namespace?: string | undefined;
  readonly name?: string;
  readonly subresource?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: JsonObject | readonly unknown[];
  readonly patch?: PatchKind;
  readonly user?: ApiUser;
  readonly dryRun?: boolean;
}

/** A watch and the events it has delivered so far. */
export interface RigWatch {
  readonly lines: ServedWatchEvent[];
  state: 'open' | 'ended';
  stop(): void;
}

/**
 * The embedded API without a network under a virtual clock; calls are the administrator's, in the
 * namespace `default`.
 */
export class LocalApiRig implements Disposable {
  readonly clock = new VirtualClock();
  readonly store: VersionedStore;
  readonly api: LocalApi;
  readonly catalogue: Catalogue;
  readonly warnings: string[] = [];
  readonly signal = new AbortController().signal;

  constructor(options: LocalApiRigOptions = {}) {
    const { clock } = this;
    this.catalogue = createCatalogue({ ...plainRules, ...options.rules }, options.views);
    this.store = options.store ?? new VersionedStore({ historyLimit: options.historyLimit ?? 1_000 });
    this.api = new LocalApi({
      clock,
      random: seededRandom(1),
      logger: collectLogs(clock).logger,
      store: this.store,
      durability: options.durability ?? noDurability(),
      catalogue: this.catalogue,
      storageLimits: options.storageLimits,
      ...(options.maxWaiting === undefined ? {} : { maxPendingEvents: options.maxWaiting }),
    });
    this.namespace('default');
  }

  /** Creates a namespace unless it exists. */
  namespace(name: string, more: Partial<StoredObject> = {}): void {
    const metadata = { name, uid: `uid-${name}`, resourceVersion: '', creationTimestamp: '' };
    if (this.store.get(serverResources.namespaces, undefined, name) !== undefined) return;
    this.store.put(
      serverResources.namespaces,
      { apiVersion: 'v1', kind: 'Namespace', metadata, status: { phase: 'Active' }, ...more },
      'rig',
    );
  }

  call(verb: ResourceVerb, resource: ApiResource, options: CallOptions = {}): ApiCall {
    const { name, subresource, body, patch, user = adminUser, dryRun = false } = options;
    const directory = 'namespace' in options ? options.namespace : 'default';
    return {
      user,
      verb,
      entry: this.catalogue.of(resource),
      namespace: resource.scope === 'cluster' ? undefined : directory,
      name,
      subresource,
      query: new URLSearchParams(options.query),
      body,
      patch,
      dryRun,
      warn: (text) => this.warnings.push(text),
    };
  }

  ask(verb: ResourceVerb, resource: ApiResource, options: CallOptions = {}): Promise<ApiResponse> {
    return this.api.handle(this.call(verb, resource, options), this.signal);
  }

  async object(verb: ResourceVerb, resource: ApiResource, options: CallOptions = {}): Promise<StoredObject> {
    const response = await this.ask(verb, resource, options);
    assert.equal(response.kind, 'object');
    return (response as unknown as { readonly object: StoredObject }).object;
  }

  async list(resource: ApiResource, options: CallOptions = {}): Promise<ObjectList> {
    const response = await this.ask('list', resource, options);
    assert.equal(response.kind, 'list');
    return (response as { readonly list: ObjectList }).list;
  }

  async names(resource: ApiResource, options: CallOptions = {}): Promise<readonly string[]> {
    const { items } = await this.list(resource, options);
    return items.map((item) => (item as StoredObject).metadata.name);
  }

  configMap(name: string, more: JsonObject = {}, options: CallOptions = {}): Promise<StoredObject> {
    const { metadata = {}, ...rest } = more as { readonly metadata?: JsonObject };
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata }, ...rest };
    return this.object('create', apiResources.configMaps, { ...options, body });
  }

  pod(name: string, more: { readonly metadata?: JsonObject; readonly spec?: JsonObject } = {}) {
    const metadata = { name, ...more.metadata };
    const spec = { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }], ...more.spec };
    const body = { apiVersion: 'v1', kind: 'Pod', metadata, spec };
    return this.object('create', apiResources.pods, { body });
  }

  watch(resource: ApiResource, options: CallOptions = {}): RigWatch {
    const controller = new AbortController();
    const watch: RigWatch = { lines: [], state: 'open', stop: () => controller.abort() };
    const lines = this.api.watch(this.call('watch', resource, options), controller.signal);
    const read = async () => {
      for await (const line of lines) watch.lines.push(line);
    };
    const end = () => {
      watch.state = 'ended';
    };
    read().then(end, end);
    return watch;
  }

  [Symbol.dispose](): void {
    this.api[Symbol.dispose]();
  }
}

/** Returns the events of a watch, for example `ADDED a`. */
export function toldIn({ lines }: RigWatch): readonly string[] {
  return lines.map(({ type, object }) => {
    const { name } = (object['metadata'] ?? {}) as { readonly name?: string };
    return name === undefined ? type : `${type} ${name}`;
  });
}

/** Fails unless the call is rejected with this status code and, if given, this message. */
export async function refusedWith(
  call: Promise<unknown>,
  code: number,
  message?: string,
): Promise<StatusError['status']> {
  const error = await call.then(
    () => assert.fail(`should be refused with ${code}`),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof StatusError, String(error));
  if (message !== undefined) assert.equal(error.status.message, message);
  assert.equal(error.status.code, code, error.message);
  return error.status;
}
