import type { ApiResource } from '../../api/index.ts';
import { type FieldCause, type StatusBody, StatusError } from './api-types.ts';

/** The resource that an error is about, and the object name if the error is about one object. */
export interface NamedResource {
  readonly resource: ApiResource;
  readonly name?: string | undefined;
}

type Details = NonNullable<StatusBody['details']>;

/**
 * The name with its API group, if the group is not the core group: `leases.coordination.k8s.io`.
 */
export function groupQualified(name: string, group: string): string {
  return group === '' ? name : `${name}.${group}`;
}

/** The `details` of a Status; some errors name the kind instead of the plural. */
export function detailsOf(
  { resource: { plural, group }, name }: NamedResource,
  kind: string = plural,
): Details {
  return {
    ...(name === undefined || name === '' ? {} : { name }),
    ...(group === '' ? {} : { group }),
    kind,
  };
}

export function notFound(about: NamedResource): StatusError {
  const { resource, name } = about;
  return new StatusError({
    code: 404,
    reason: 'NotFound',
    message: `${groupQualified(resource.plural, resource.group)} "${name ?? ''}" not found`,
    details: detailsOf(about),
  });
}

export function badRequest(message: string): StatusError {
  return new StatusError({ code: 400, reason: 'BadRequest', message });
}

/**
 * A Forbidden error. `why` follows the colon of the message, such as `User "u" cannot get resource
 * "pods"`.
 */
export function forbidden(about: NamedResource, why: string, causes?: Details['causes']): StatusError {
  const { resource, name } = about;
  const what = groupQualified(resource.plural, resource.group);
  const which = name === undefined || name === '' ? what : `${what} "${name}"`;
  return new StatusError({
    code: 403,
    reason: 'Forbidden',
    message: `${which} is forbidden: ${why}`,
    details: { ...detailsOf(about), ...(causes && { causes }) },
  });
}

/**
 * A Forbidden error for authorization. `why` is the predicate, such as `cannot get resource
 * "pods"`.
 */
export function forbiddenForUser(
  { user, ...about }: NamedResource & { readonly user: { readonly name: string } },
  why: string,
): StatusError {
  return forbidden(about, `User "${user.name}" ${why}`);
}

/** An Invalid error whose message lists all causes. */
export function invalid(about: NamedResource, causes: readonly FieldCause[]): StatusError {
  const { kind, group } = about.resource;
  return invalidFields({ kind, group, name: about.name ?? '' }, causes);
}

export interface InvalidSubject {
  readonly kind: string;
  readonly group: string;
  readonly name: string;
}

/** The maximum number of causes: an object with many elements can have an error in each of them. */
const maxCauses = 200;

/** An Invalid error for an object that is no resource, such as ListOptions. */
export function invalidFields(
  { kind, group, name }: InvalidSubject,
  all: readonly FieldCause[],
): StatusError {
  const causes = all.slice(0, maxCauses);
  const messages = [...new Set(causes.map(({ field, message }) => `${field}: ${message}`))];
  if (all.length > maxCauses) messages.push(`and ${all.length - maxCauses} more`);
  const list = messages.length === 1 ? messages[0] : `[${messages.join(', ')}]`;
  return new StatusError({
    code: 422,
    reason: 'Invalid',
    message: `${groupQualified(kind, group)} "${name}" is invalid: ${list}`,
    details: {
      ...(name === '' ? {} : { name }),
      ...(group === '' ? {} : { group }),
      ...(kind === '' ? {} : { kind }),
      causes: distinct(causes),
    },
  });
}

/** Removes duplicate causes, because two validators may report the same one. */
function distinct(causes: readonly FieldCause[]): readonly FieldCause[] {
  return [...new Map(causes.map((cause) => [`${cause.field}: ${cause.message}`, cause])).values()].map(
    ({ reason, message, field }) => ({ reason, message, field }),
  );
}

export const modifiedMessage =
  'the object has been modified; please apply your changes to the latest version and try again';

export function conflict(about: NamedResource, why: string): StatusError {
  const { resource, name } = about;
  return new StatusError({
    code: 409,
    reason: 'Conflict',
    message: `Operation cannot be fulfilled on ${groupQualified(resource.plural, resource.group)} "${name ?? ''}": ${why}`,
    details: detailsOf(about),
  });
}

/**
 * A failed precondition of a delete; kube-apiserver names the kind instead of the plural in this
 * error.
 */
export function preconditionFailed(about: NamedResource, why: string): StatusError {
  const { resource, name } = about;
  return new StatusError({
    code: 409,
    reason: 'Conflict',
    message: `Operation cannot be fulfilled on ${groupQualified(resource.kind, resource.group)} "${name ?? ''}": ${why}`,
    details: detailsOf(about, resource.kind),
  });
}

export function alreadyExists(about: NamedResource, how: 'there' | 'being-deleted'): StatusError {
  const { resource, name } = about;
  const prefix = how === 'there' ? '' : 'object is being deleted: ';
  return new StatusError({
    code: 409,
    reason: 'AlreadyExists',
    message: `${prefix}${groupQualified(resource.plural, resource.group)} "${name ?? ''}" already exists`,
    details: detailsOf(about),
  });
}

/** Every name generated from generateName was already in use. */
export function generatedNameConflict(about: NamedResource): StatusError {
  const { resource, name } = about;
  const what = groupQualified(resource.plural, resource.group);
  return new StatusError({
    code: 409,
    reason: 'AlreadyExists',
    message: `${what} "${name ?? ''}" already exists, the server was not able to generate a unique name for the object`,
    details: { ...detailsOf(about), retryAfterSeconds: 1 },
  });
}

/** The requested resourceVersion or continue token is older than the history. */
export function expired(message: string, next?: StatusBody['next']): StatusError {
  return new StatusError({ code: 410, reason: 'Expired', message, ...(next && { next }) });
}

export function resourceVersionTooOld(requested: number, oldest: number): StatusError {
  return expired(`too old resource version: ${requested} (${oldest})`);
}

/** The requested resourceVersion is newer than the latest one of the store. */
export function resourceVersionTooLarge(requested: string, current: number): StatusError {
  return new StatusError({
    code: 504,
    reason: 'Timeout',
    message: `Timeout: Too large resource version: ${requested}, current: ${current}`,
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    },
  });
}

export function methodNotAllowed(): StatusError {
  return new StatusError({
    code: 405,
    reason: 'MethodNotAllowed',
    message: 'the server does not allow this method on the requested resource',
    details: {},
  });
}

/**
 * The request path does not exist. The details have no name, so that clients can distinguish it
 * from a missing object.
 */
export function pathNotFound(): StatusError {
  return new StatusError({
    code: 404,
    reason: 'NotFound',
    message: 'the server could not find the requested resource',
    details: {},
  });
}

/** A write would exceed the memory limit for stored objects; `why` names the limit. */
export function storageFull(why: string): StatusError {
  return new StatusError({
    code: 507,
    reason: 'InsufficientStorage',
    message: `storage is full: ${why}; delete objects that are not needed`,
    details: {},
  });
}

/** Writes cannot be persisted at the moment; the client may retry. */
export function unavailable(message: string): StatusError {
  return new StatusError({
    code: 503,
    reason: 'ServiceUnavailable',
    message,
    details: { retryAfterSeconds: 5 },
  });
}

export function internalError(message: string): StatusError {
  return new StatusError({
    code: 500,
    reason: 'InternalError',
    message: `Internal error occurred: ${message}`,
    details: { causes: [{ reason: '', message }] },
  });
}
