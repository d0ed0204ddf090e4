import type { Chapter } from '../step.ts';
import { access } from './access.ts';
import { apply } from './apply.ts';
import { certificates } from './certificates.ts';
import { discovery } from './discovery.ts';
import { expiry } from './expiry.ts';
import { lists } from './lists.ts';
import { namespaces } from './namespaces.ts';
import { negotiation } from './negotiation.ts';
import { nodes } from './nodes.ts';
import { patches } from './patches.ts';
import { records } from './records.ts';
import { storageKinds } from './storage.ts';
import { subresources } from './subresources.ts';
import { tables } from './tables.ts';
import { watches } from './watches.ts';
import { writes } from './writes.ts';

/**
 * All chapters (sequences of requests) in the order in which they run. Objects of a chapter stay in
 * its own namespace.
 */
export const chapters: readonly Chapter[] = [
  lists,
  watches,
  patches,
  writes,
  negotiation,
  discovery,
  subresources,
  access,
  nodes,
  records,
  tables,
  namespaces,
  storageKinds,
  certificates,
  apply,
  expiry,
];
