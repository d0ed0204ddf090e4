import { type ApiResource, apiError } from '../../api/index.ts';

export type ApiVerb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';

export interface ApiUser {
  readonly name: string;
  readonly groups: readonly string[];
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

/** The node a user is, if it is one. */
export function nodeOf({ name, groups }: ApiUser): string | undefined {
  return groups.includes('system:nodes') && name.startsWith(nodePrefix)
    ? name.slice(nodePrefix.length)
    : undefined;
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
}

/** The resource and its part as permissions name them, such as `pods/status`. */
export function targetOf({ resource, subresource }: Pick<ApiRequest, 'resource' | 'subresource'>): string {
  return subresource === undefined ? resource.plural : `${resource.plural}/${subresource}`;
}

export function describeRequest({ verb, resource, name, subresource }: ApiRequest): string {
  return [`${verb} ${resource.plural}`, name, subresource].filter((part) => part !== undefined).join('/');
}

/** A refusal in the words of an API server. */
export interface Refusal {
  readonly status: number;
  readonly reason: string;
  readonly message: string;
  readonly retryAfterMs?: number | undefined;
}

export function refusal(request: ApiRequest, { status, reason, message, retryAfterMs }: Refusal): Error {
  const answer = { code: status, reason, message };
  return apiError({ what: describeRequest(request), status, answer, retryAfterMs });
}

export function forbidden(request: ApiRequest, why: string): Error {
  const { user, resource, name } = request;
  const what = `${targetOf(request)}${resource.group === '' ? '' : `.${resource.group}`}`;
  const message = `${what} "${name ?? ''}" is forbidden: User "${user.name}" ${why}`;
  return refusal(request, { status: 403, reason: 'Forbidden', message });
}

export function notFound(request: ApiRequest): Error {
  const { plural } = request.resource;
  return refusal(request, {
    status: 404,
    reason: 'NotFound',
    message: `${plural} "${request.name}" not found`,
  });
}

export function badRequest(request: ApiRequest, message: string): Error {
  return refusal(request, { status: 400, reason: 'BadRequest', message });
}

/** Of several complaints all are told at once. */
export function unprocessable(request: ApiRequest, complaints: readonly string[]): Error {
  const { resource, name = '' } = request;
  const message = `${resource.kind} "${name}" is invalid: ${complaints.join(', ')}`;
  return refusal(request, { status: 422, reason: 'Invalid', message });
}

export function conflict(request: ApiRequest, why: string): Error {
  const { resource, name } = request;
  const message = `Operation cannot be fulfilled on ${resource.plural} "${name}": ${why}`;
  return refusal(request, { status: 409, reason: 'Conflict', message });
}

/** What was asked for is older than what the server remembers. */
export function expired(request: ApiRequest, version: string): Error {
  const message = `too old resource version: ${version}`;
  return refusal(request, { status: 410, reason: 'Expired', message });
}
