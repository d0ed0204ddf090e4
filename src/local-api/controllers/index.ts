import type { ApiResource } from '../../api/index.ts';
import { KubelingError, type Logger } from '../../lib/index.ts';
import type { SigningDesk } from '../api/auth-types.ts';
import type { ApiLoop, ResourceEntry, World } from '../api/index.ts';
import type { ForcedEnds } from '../kinds/namespaces.ts';
import {
  bootstrapLoop,
  ensureContents,
  ensureFirstObjects,
  firstNamespaces,
  namespaceContentsLoop,
  type OwnService,
} from './bootstrap.ts';
import { certificatesLoop } from './certificates.ts';
import { ephemeralClaimsLoop } from './ephemeral-claims.ts';
import { eventExpiryLoop } from './event-expiry.ts';
import { ServerHand } from './keyed-controller.ts';
import { namespaceDeletionLoop } from './namespace-deletion.ts';
import { volumeBindingLoop } from './volume-binding.ts';

export type { OwnService } from './bootstrap.ts';

export interface LoopNeeds {
  readonly world: World;
  readonly log: Logger;
  /** All resources there are. */
  readonly entries: readonly ResourceEntry[];
  readonly signing: SigningDesk;
  /** The node whose serving certificates are granted without asking. */
  readonly localNode: string;
  /** How long certificates hold at most that are signed here; a year unless given. */
  readonly signedForMs?: number | undefined;
  /** The certificates by which pods know the server, as PEM; read again now and then. */
  readonly rootCertificates: () => string;
  readonly ownService: OwnService;
  readonly forced: ForcedEnds;
  /** An hour unless given. */
  readonly eventsKeptForMs?: number | undefined;
  /** 20,000 unless given. */
  readonly mostEvents?: number | undefined;
}

export interface KindLoops {
  /** Makes what must be there before the first request; the loops keep it so. */
  readonly prepare: () => void;
  readonly loops: readonly ApiLoop[];
}

/** All that the server does by itself. */
export function kindLoops(needs: LoopNeeds): KindLoops {
  const { entries, eventsKeptForMs = 3_600_000, mostEvents = 20_000 } = needs;
  const own = entries.filter(({ kept, view }) => kept === 'stored' && view === undefined);
  const byPath = new Map(own.map((entry) => [pathOf(entry.resource), entry]));
  const hand = new ServerHand(needs.world, (resource) => found(byPath, resource));
  const deps = { ...needs, hand };
  const resources = own.map(({ resource }) => resource).filter(({ scope }) => scope === 'namespace');
  return {
    prepare: () => {
      ensureFirstObjects(deps);
      for (const name of firstNamespaces) ensureContents(deps, name);
    },
    loops: [
      bootstrapLoop(deps),
      namespaceContentsLoop(deps),
      namespaceDeletionLoop({ ...deps, resources }),
      ephemeralClaimsLoop(deps),
      volumeBindingLoop(deps),
      certificatesLoop(deps),
      eventExpiryLoop({ ...deps, keptForMs: eventsKeptForMs, most: mostEvents }),
    ],
  };
}

function pathOf({ group, plural }: ApiResource): string {
  return `${group}/${plural}`;
}

function found(entries: ReadonlyMap<string, ResourceEntry>, resource: ApiResource): ResourceEntry {
  const entry = entries.get(pathOf(resource));
  if (entry === undefined)
    throw new KubelingError('BUG', `Cannot serve ${pathOf(resource)} as it is not in the catalogue`);
  return entry;
}
