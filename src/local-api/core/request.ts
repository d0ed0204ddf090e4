import type { ApiResource } from '../../api/index.ts';
import type { ResourceVerb } from './contract.ts';

export type ApiVerb = ResourceVerb;

export interface ApiUser {
  readonly name: string;
  readonly groups: readonly string[];
  readonly uid?: string;
  /** What else is known of who asks, such as the pod a token was made out for. */
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** May do everything. */
export const adminUser: ApiUser = { name: 'kubernetes-admin', groups: ['system:masters'] };

const nodePrefix = 'system:node:';

export function nodeUser(node: string): ApiUser {
  return { name: nodePrefix + node, groups: ['system:nodes', 'system:authenticated'] };
}

/** Whom a bootstrap token stands for. */
export function bootstrapUser(tokenId: string): ApiUser {
  return { name: `system:bootstrap:${tokenId}`, groups: ['system:bootstrappers', 'system:authenticated'] };
}

/** The node a user is, if it is one. Without a name it is none: it would be the node of all pods that have none yet. */
export function nodeOf({ name, groups }: ApiUser): string | undefined {
  const isNode = groups.includes('system:nodes') && name.startsWith(nodePrefix);
  return isNode && name !== nodePrefix ? name.slice(nodePrefix.length) : undefined;
}

/** One call as the server sees it. */
export interface ApiRequest {
  readonly user: ApiUser;
  readonly verb: ApiVerb;
  readonly resource: ApiResource;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly body?: unknown;
  /** A rehearsal does all but the last step; it is meant unless given. */
  readonly mode?: 'meant' | 'rehearsal';
  /** Shown to the caller, whatever becomes of the request. */
  readonly warn?: ((text: string) => void) | undefined;
}

/** The resource and its part as permissions name them, such as `pods/status`. */
export function targetOf(of: {
  readonly resource: Pick<ApiResource, 'plural'>;
  readonly subresource?: string | undefined;
}): string {
  const { resource, subresource } = of;
  return subresource === undefined ? resource.plural : `${resource.plural}/${subresource}`;
}

export function describeRequest({ verb, resource, name, subresource }: ApiRequest): string {
  return [`${verb} ${resource.plural}`, name, subresource].filter((part) => part !== undefined).join('/');
}
