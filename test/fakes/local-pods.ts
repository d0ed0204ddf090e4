import type { ApiResource, JsonObject, PatchKind } from '../../src/api/index.ts';
import { apiResources } from '../../src/api/index.ts';
import { type Clock, collectLogs, seededRandom } from '../../src/lib/index.ts';
import {
  type ApiCall,
  type ApiResponse,
  createCatalogue,
  LocalApi,
  type ResourceVerb,
  StatusError,
  type StoredObject,
  serverResources,
  VersionedStore,
} from '../../src/local-api/api/index.ts';
import { podStrategy } from '../../src/local-api/pods/index.ts';
import { plainRules } from '../simulator/api/plain-rules.ts';
import { type RecordedAnswer, recordable, surroundings } from '../testdata/pods/recorded.ts';
import { adminUser } from './api-users.ts';
import { noDurability } from './no-durability.ts';
import { VirtualClock } from './virtual-clock.ts';

export interface Wish {
  readonly verb: ResourceVerb;
  readonly resource?: ApiResource;
  readonly namespace?: string | undefined;
  readonly name?: string;
  readonly subresource?: string;
  readonly body?: unknown;
  readonly patch?: PatchKind;
  readonly dryRun?: 'yes' | 'no';
}

const never = new AbortController().signal;
const bySort: Readonly<Record<string, ApiResource>> = {
  PriorityClass: serverResources.priorityClasses,
  RuntimeClass: apiResources.runtimeClasses,
  ServiceAccount: apiResources.serviceAccounts,
  Node: apiResources.nodes,
};

/**
 * The embedded API with the validation and defaults of pods, in memory; the namespace `default` and
 * its service account exist.
 */
export class LocalPods implements Disposable {
  readonly clock: Clock;
  readonly api: LocalApi;
  readonly warnings: string[] = [];
  readonly logs: ReturnType<typeof collectLogs>;
  readonly #catalogue = createCatalogue({ ...plainRules, pods: podStrategy });

  constructor(clock: Clock = new VirtualClock()) {
    this.clock = clock;
    this.logs = collectLogs(clock);
    this.api = new LocalApi({
      clock,
      random: seededRandom(1),
      logger: this.logs.logger,
      store: new VersionedStore({ historyLimit: 1_000 }),
      durability: noDurability(),
      catalogue: this.#catalogue,
    });
    this.do({
      verb: 'create',
      resource: serverResources.namespaces,
      body: { metadata: { name: 'default' } },
      namespace: undefined,
    });
    this.do({
      verb: 'create',
      resource: apiResources.serviceAccounts,
      body: { metadata: { name: 'default' } },
    });
  }

  get catalogue() {
    return this.#catalogue;
  }

  get world() {
    return this.api.context;
  }

  /** Creates the objects that the pods of the recordings refer to. */
  surround(): void {
    for (const { object } of surroundings) {
      const resource = bySort[String(object['kind'])] ?? apiResources.nodes;
      const namespace = resource.scope === 'cluster' ? undefined : 'default';
      this.do({ verb: 'create', resource, namespace, body: object });
    }
  }

  /** Sends a request; throws the API error. */
  do(options: Wish): StoredObject {
    return this.world.execute(this.#call(options));
  }

  /** Sends a request; returns the response in the format of the recordings. */
  async answer(options: Wish): Promise<RecordedAnswer> {
    try {
      return told(await this.api.handle(this.#call(options), never));
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      return recordable(error.status.code, error.status as unknown as JsonObject);
    }
  }

  pod(name = 'a'): StoredObject | undefined {
    return this.world.objects.get(apiResources.pods, 'default', name);
  }

  [Symbol.dispose](): void {
    this.api[Symbol.dispose]();
  }

  #call(options: Wish): ApiCall {
    const { verb, resource = apiResources.pods, name, subresource, body, patch, dryRun } = options;
    return {
      user: adminUser,
      verb,
      entry: this.#catalogue.of(resource),
      namespace: 'namespace' in options ? options.namespace : 'default',
      name,
      subresource,
      query: new URLSearchParams(),
      body: body as JsonObject,
      patch,
      dryRun: dryRun === 'yes',
      warn: (text) => {
        this.warnings.push(text);
      },
    };
  }
}

function told(response: ApiResponse): RecordedAnswer {
  if (response.kind === 'object') return recordable(response.code, response.object);
  return { code: response.code };
}
