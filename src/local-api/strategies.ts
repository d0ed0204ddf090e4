import { apiResources } from '../api/index.ts';
import type { Clock, Logger, Random } from '../lib/index.ts';
import { type Catalogue, type Controller, createCatalogue, type ServerContext } from './api/index.ts';
import {
  type AccessAuthorizer,
  type CertificateSigner,
  createKinds,
  type ServerEndpoint,
  type TokenIssuer,
} from './kinds/index.ts';
import { bindingsStrategy, podStrategy, Scheduler } from './pods/index.ts';

export interface StrategyDeps {
  readonly nodeName: string;
  readonly maxCertificateLifetimeMs?: number | undefined;
  readonly eventTtlMs?: number | undefined;
  readonly tokens: TokenIssuer;
  readonly signer: CertificateSigner;
  readonly authorizer: AccessAuthorizer;
  /** The current CA certificate of the API server. */
  readonly authorityPem: () => string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export interface Strategies {
  readonly catalogue: Catalogue;
  /** Creates the bootstrap objects and returns the controllers. */
  readonly start: (
    context: ServerContext,
    entries: Catalogue,
    serverService: ServerEndpoint,
  ) => readonly Controller[];
}

/**
 * The virtual IP addresses of services. There is no service proxy: pods only read the addresses
 * from their environment.
 */
const serviceRange = '10.96.0.0/16';

/** The strategies of all kinds, and the catalogue that uses them. */
export function createStrategies(deps: StrategyDeps): Strategies {
  const kinds = createKinds({ ...deps, serviceRange });
  const bindings = bindingsStrategy(() => catalogue.of(apiResources.pods));
  const catalogue: Catalogue = createCatalogue(
    { ...kinds.strategies, pods: podStrategy, bindings },
    kinds.views,
  );
  return {
    catalogue,
    start(context, entries, serverService) {
      const { prepare, controllers } = kinds.createControllers({
        context,
        log: deps.logger,
        entries: entries.all,
        localNode: deps.nodeName,
        maxCertificateLifetimeMs: deps.maxCertificateLifetimeMs,
        eventTtlMs: deps.eventTtlMs,
        rootCertificates: deps.authorityPem,
        serverEndpoint: serverService,
      });
      prepare();
      const binder = new Scheduler({
        context,
        entryOf: (resource) => entries.of(resource),
        logger: deps.logger,
      });
      return [...controllers, binder];
    },
  };
}
