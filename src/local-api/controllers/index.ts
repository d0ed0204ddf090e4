import type { ApiResource } from '../../api/index.ts';
import { KubelingError, type Logger } from '../../lib/index.ts';
import type { CertificateSigner } from '../api/auth-types.ts';
import type { Controller, ResourceEntry, ServerContext } from '../api/index.ts';
import type { ForcedNamespaceDeletions } from '../kinds/namespaces.ts';
import {
  bootstrapController,
  ensureBootstrapObjects,
  ensureNamespaceContents,
  namespaceContentsController,
  type ServerEndpoint,
  systemNamespaces,
} from './bootstrap.ts';
import { certificateController } from './certificates.ts';
import { ephemeralClaimController } from './ephemeral-claims.ts';
import { eventExpiryController } from './event-expiry.ts';
import { ControllerClient } from './keyed-controller.ts';
import { namespaceDeletionController } from './namespace-deletion.ts';
import { volumeBindingController } from './volume-binding.ts';

export type { ServerEndpoint } from './bootstrap.ts';

export interface ControllerDeps {
  readonly context: ServerContext;
  readonly log: Logger;
  /** All resources in the catalogue of the API. */
  readonly entries: readonly ResourceEntry[];
  readonly signer: CertificateSigner;
  /** The node whose serving certificates are approved automatically. */
  readonly localNode: string;
  /** The maximum lifetime of certificates that the API server signs; a year by default. */
  readonly maxCertificateLifetimeMs?: number | undefined;
  /** The CA bundle for pods, as PEM; read periodically. */
  readonly rootCertificates: () => string;
  readonly serverEndpoint: ServerEndpoint;
  readonly forcedDeletions: ForcedNamespaceDeletions;
  /** How long events are retained after they last occurred; an hour by default. */
  readonly eventTtlMs?: number | undefined;
  /** The maximum number of events; 20,000 by default. */
  readonly maxEvents?: number | undefined;
}

export interface Controllers {
  /** Creates the objects that must exist before the first request. */
  readonly prepare: () => void;
  readonly controllers: readonly Controller[];
}

/** Creates the control loops of the API server. */
export function createControllers(needs: ControllerDeps): Controllers {
  const { entries, eventTtlMs = 3_600_000, maxEvents = 20_000 } = needs;
  const own = entries.filter(({ storage, view }) => storage === 'stored' && view === undefined);
  const byPath = new Map(own.map((entry) => [pathOf(entry.resource), entry]));
  const client = new ControllerClient(needs.context, (resource) => entryOf(byPath, resource));
  const deps = { ...needs, client };
  const resources = own.map(({ resource }) => resource).filter(({ scope }) => scope === 'namespace');
  return {
    prepare: () => {
      ensureBootstrapObjects(deps);
      for (const name of systemNamespaces) ensureNamespaceContents(deps, name);
    },
    controllers: [
      bootstrapController(deps),
      namespaceContentsController(deps),
      namespaceDeletionController({ ...deps, resources }),
      ephemeralClaimController(deps),
      volumeBindingController(deps),
      certificateController(deps),
      eventExpiryController({ ...deps, ttlMs: eventTtlMs, maxEvents: maxEvents }),
    ],
  };
}

function pathOf({ group, plural }: ApiResource): string {
  return `${group}/${plural}`;
}

function entryOf(entries: ReadonlyMap<string, ResourceEntry>, resource: ApiResource): ResourceEntry {
  const entry = entries.get(pathOf(resource));
  if (entry === undefined)
    throw new KubelingError('BUG', `Cannot serve ${pathOf(resource)}: it is not in the catalogue`);
  return entry;
}
