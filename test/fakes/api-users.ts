import type { ApiUser } from '../../src/local-api/api/index.ts';

/** The cluster administrator. */
export const adminUser: ApiUser = { name: 'kubernetes-admin', groups: ['system:masters'] };

export function nodeUser(node: string): ApiUser {
  return { name: `system:node:${node}`, groups: ['system:nodes', 'system:authenticated'] };
}

/** Returns the user of a bootstrap token. */
export function bootstrapUser(tokenId: string): ApiUser {
  return { name: `system:bootstrap:${tokenId}`, groups: ['system:bootstrappers', 'system:authenticated'] };
}
