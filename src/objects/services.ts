import { type ApiClient, type ApiObject, apiResources, Reflector, type WatchEvent } from '../api/index.ts';
import type { Service } from '../kinds/index.ts';
import { type Clock, type Logger, type Random, untilAborted } from '../lib/index.ts';

/** What a container's variables are made of. */
export type KnownServices =
  /** Not read yet: a container of a pod from the API must wait. */
  { readonly state: 'unread' } | { readonly state: 'read'; readonly services: readonly Service[] };

type ReadingClient = Pick<ApiClient, 'list' | 'watch' | 'onReturn'>;

export interface ServicesDeps {
  readonly api: ReadingClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** What is used until they have been read; they are waited for unless given. */
  readonly kept?: KeptServices | undefined;
}

/** The services as they were when they were last read. */
export interface KeptServices {
  /** Undefined when nothing was kept. */
  read(): Promise<readonly Service[] | undefined>;
  write(services: readonly Service[]): Promise<void>;
}

/** However often services change, what is kept of them is written once in this time. */
const writeEveryMs = 10_000;

/** Follows the services of the cluster that have an address of their own. */
export class Services {
  readonly #deps: ServicesDeps;
  readonly #reflector: Reflector<Service>;
  #services: readonly Service[] | undefined;
  #isChanged = false;

  constructor(deps: ServicesDeps) {
    this.#deps = deps;
    const { api, clock, random, logger } = deps;
    const query = { resource: apiResources.services, fieldSelector: 'spec.clusterIP!=None' };
    this.#reflector = new Reflector<Service>({ client: slimmed(api), clock, random, logger, query });
  }

  /** Once they have been read they stay so, however long the server is away. */
  known(): KnownServices {
    if (this.#reflector.hasSynced) this.#services = this.#reflector.list();
    return this.#services === undefined ? { state: 'unread' } : { state: 'read', services: this.#services };
  }

  async run(signal: AbortSignal): Promise<void> {
    const { kept } = this.#deps;
    using _news = this.#reflector.onNews(() => {
      this.#isChanged = true;
    });
    this.#reflector.start();
    try {
      await (kept === undefined ? untilAborted(signal) : this.#keep(kept, signal));
    } finally {
      this.known();
      await this.#reflector.stop();
    }
  }

  async #keep(kept: KeptServices, signal: AbortSignal): Promise<never> {
    const before = await kept.read();
    this.#services ??= before;
    for (;;) {
      await this.#deps.clock.sleep(writeEveryMs, signal);
      if (!this.#isChanged || !this.#reflector.hasSynced) continue;
      this.#isChanged = false;
      await kept.write(this.#reflector.list()).catch((error: unknown) => {
        this.#deps.logger.error('The copy of the services cannot be kept', error);
      });
    }
  }
}

/** Hands on the little that variables are made of: a node keeps every service of its cluster in memory. */
function slimmed(api: ReadingClient): ReadingClient {
  return {
    ...(api.onReturn === undefined ? {} : { onReturn: api.onReturn.bind(api) }),
    async list<T extends ApiObject>(...args: Parameters<ApiClient['list']>) {
      const list = await api.list<T>(...args);
      // Whoever reads the list says what is wrong with one that has no items.
      return Array.isArray(list.items) ? { ...list, items: list.items.map(slimService) } : list;
    },
    async *watch<T extends ApiObject>(...args: Parameters<ApiClient['watch']>) {
      for await (const event of api.watch<T>(...args)) yield slimEvent(event);
    },
  };
}

function slimEvent<T extends ApiObject>(event: WatchEvent<T>): WatchEvent<T> {
  return event.type === 'BOOKMARK' ? event : { ...event, object: slimService(event.object) };
}

function slimService<T extends ApiObject>(told: T): T {
  const service: Service | null | undefined = told;
  const { name, namespace, uid, resourceVersion } = service?.metadata ?? {};
  const { clusterIP, ports } = service?.spec ?? {};
  const slimPorts = ports?.map((port) => ({ name: port.name, port: port.port, protocol: port.protocol }));
  const metadata = { name, namespace, uid, resourceVersion };
  const slim: Service = { metadata, spec: { clusterIP, ports: slimPorts } };
  return slim as unknown as T;
}
