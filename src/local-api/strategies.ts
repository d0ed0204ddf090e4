import { apiResources } from '../api/index.ts';
import type { Clock, Logger, Random } from '../lib/index.ts';
import { type Catalogue, type Controller, createCatalogue, type ServerContext } from './api/index.ts';
import {
  type Authorizer,
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
  readonly authorizer: Authorizer;
  /** Of who vouches for the server, as it is now. */
  readonly authorityPem: () => string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export interface Strategies {
  readonly catalogue: Catalogue;
  /** What the server does by itself. What must be there before the first request is made at once. */
  readonly start: (
    world: ServerContext,
    entries: Catalogue,
    ownService: ServerEndpoint,
  ) => readonly Controller[];
}

/** Nobody routes these addresses here: pods only read them in their environment. */
const serviceRange = '10.96.0.0/16';

/** What each kind is, may be and may become. */
export function createStrategies(deps: StrategyDeps): Strategies {
  const kinds = createKinds({ ...deps, serviceRange });
  const bindings = bindingsStrategy(() => catalogue.of(apiResources.pods));
  const catalogue: Catalogue = createCatalogue(
    { ...kinds.strategies, pods: podStrategy, bindings },
    kinds.views,
  );
  return {
    catalogue,
    start(world, entries, ownService) {
      const { prepare, controllers } = kinds.createControllers({
        context: world,
        log: deps.logger,
        entries: entries.all,
        localNode: deps.nodeName,
        maxCertificateLifetimeMs: deps.maxCertificateLifetimeMs,
        eventTtlMs: deps.eventTtlMs,
        rootCertificates: deps.authorityPem,
        serverEndpoint: ownService,
      });
      prepare();
      const binder = new Scheduler({
        context: world,
        entryOf: (resource) => entries.of(resource),
        logger: deps.logger,
      });
      return [...controllers, binder];
    },
  };
}
