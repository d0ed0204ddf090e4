import { apiResources } from '../api/index.ts';
import type { Clock, Logger, Random } from '../lib/index.ts';
import { type ApiLoop, type Catalogue, makeCatalogue, type World } from './api/index.ts';
import {
  type AccessJudge,
  makeKinds,
  type OwnService,
  type SigningDesk,
  type TokenDesk,
} from './kinds/index.ts';
import { AutoBinder, olderBindingRules, podRules } from './pods/index.ts';

export interface RulesDeps {
  readonly nodeName: string;
  readonly signedForMs?: number | undefined;
  readonly eventsKeptForMs?: number | undefined;
  readonly tokens: TokenDesk;
  readonly signing: SigningDesk;
  readonly judge: AccessJudge;
  /** Of who vouches for the server, as it is now. */
  readonly authorityPem: () => string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export interface Rules {
  readonly catalogue: Catalogue;
  /** What the server does by itself. What must be there before the first request is made at once. */
  readonly begin: (world: World, entries: Catalogue, ownService: OwnService) => readonly ApiLoop[];
}

/** Nobody routes these addresses here: pods only read them in their environment. */
const serviceRange = '10.96.0.0/16';

/** What each kind is, may be and may become. */
export function makeRules(deps: RulesDeps): Rules {
  const kinds = makeKinds({ ...deps, serviceRange });
  const bindings = olderBindingRules(() => catalogue.of(apiResources.pods));
  const catalogue: Catalogue = makeCatalogue({ ...kinds.rules, pods: podRules, bindings }, kinds.views);
  return {
    catalogue,
    begin(world, entries, ownService) {
      const { prepare, loops } = kinds.loops({
        world,
        log: deps.logger,
        entries: entries.all,
        localNode: deps.nodeName,
        signedForMs: deps.signedForMs,
        eventsKeptForMs: deps.eventsKeptForMs,
        rootCertificates: deps.authorityPem,
        ownService,
      });
      prepare();
      const binder = new AutoBinder({
        world,
        entryOf: (resource) => entries.of(resource),
        logger: deps.logger,
      });
      return [...loops, binder];
    },
  };
}
