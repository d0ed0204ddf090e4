import { type ApiClient, type ApiObject, apiResources, Reflector, type WatchEvent } from '../api/index.ts';
import type { Service } from '../kinds/index.ts';
import { type Clock, type Logger, type Random, untilAborted } from '../lib/index.ts';

/** The services from which the environment variables of containers are built. */
export type ListedServices =
  /** The services were not listed yet: a container of an API pod must wait for them. */
  { readonly state: 'unread' } | { readonly state: 'read'; readonly services: readonly Service[] };

type ReadingClient = Pick<ApiClient, 'list' | 'watch' | 'onReturn'>;

export interface ServicesDeps {
  readonly api: ReadingClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /**
   * Stored services that are used until the first list; without them containers wait for the list.
   */
  readonly copies?: ServiceCopies | undefined;
}

/** The services of the last list. */
export interface ServiceCopies {
  /** The stored copy of the services; undefined when there is none. */
  read(): Promise<readonly Service[] | undefined>;
  write(services: readonly Service[]): Promise<void>;
}

/** The copy of the services is written at most once in this interval. */
const writeEveryMs = 10_000;

/** Watches the services of the cluster that have a cluster IP. */
export class Services {
  readonly #deps: ServicesDeps;
  readonly #reflector: Reflector<Service>;
  #services: readonly Service[] | undefined;
  #isChanged = false;

  constructor(deps: ServicesDeps) {
    this.#deps = deps;
    const { api, clock, random, logger } = deps;
    const query = { resource: apiResources.services, fieldSelector: 'spec.clusterIP!=None' };
    this.#reflector = new Reflector<Service>({ client: slimClient(api), clock, random, logger, query });
  }

  /**
   * Whether the services were listed; stays true however long the API server is unavailable
   * afterwards.
   */
  known(): ListedServices {
    if (this.#reflector.hasSynced) this.#services = this.#reflector.list();
    return this.#services === undefined ? { state: 'unread' } : { state: 'read', services: this.#services };
  }

  async run(signal: AbortSignal): Promise<void> {
    const { copies } = this.#deps;
    using _subscription = this.#reflector.onUpdate(() => {
      this.#isChanged = true;
    });
    this.#reflector.start();
    try {
      await (copies === undefined ? untilAborted(signal) : this.#storeCopies(copies, signal));
    } finally {
      this.known();
      await this.#reflector.stop();
    }
  }

  async #storeCopies(copies: ServiceCopies, signal: AbortSignal): Promise<never> {
    const before = await copies.read();
    this.#services ??= before;
    for (;;) {
      await this.#deps.clock.sleep(writeEveryMs, signal);
      if (!this.#isChanged || !this.#reflector.hasSynced) continue;
      this.#isChanged = false;
      await copies.write(this.#reflector.list()).catch((error: unknown) => {
        this.#deps.logger.error('Failed to store copy of services', error);
      });
    }
  }
}

/**
 * Drops the service fields that environment variables do not need, because a node caches every
 * service of its cluster.
 */
function slimClient(api: ReadingClient): ReadingClient {
  return {
    ...(api.onReturn === undefined ? {} : { onReturn: api.onReturn.bind(api) }),
    async list<T extends ApiObject>(...args: Parameters<ApiClient['list']>) {
      const list = await api.list<T>(...args);
      // A malformed list without items is returned unchanged; the reader of the list reports the
      // error.
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

function slimService<T extends ApiObject>(received: T): T {
  const service: Service | null | undefined = received;
  const { name, namespace, uid, resourceVersion } = service?.metadata ?? {};
  const { clusterIP, ports } = service?.spec ?? {};
  const slimPorts = ports?.map((port) => ({ name: port.name, port: port.port, protocol: port.protocol }));
  const metadata = { name, namespace, uid, resourceVersion };
  const slim: Service = { metadata, spec: { clusterIP, ports: slimPorts } };
  return slim as unknown as T;
}
