import type { ApiResource } from '../../api/index.ts';
import { type FieldCause, type StatusBody, StatusError } from './api-types.ts';

/** What a refusal is about, as far as it is named in it. */
export interface Named {
  readonly resource: ApiResource;
  readonly name?: string | undefined;
}

type Details = NonNullable<StatusBody['details']>;

/** With its group, where it has one: `leases.coordination.k8s.io`. */
export function qualified(name: string, group: string): string {
  return group === '' ? name : `${name}.${group}`;
}

/** How details name an object; for some refusals by its kind instead of the plural. */
export function detailsOf({ resource: { plural, group }, name }: Named, kind: string = plural): Details {
  return {
    ...(name === undefined || name === '' ? {} : { name }),
    ...(group === '' ? {} : { group }),
    kind,
  };
}

export function notFound(about: Named): StatusError {
  const { resource, name } = about;
  return new StatusError({
    code: 404,
    reason: 'NotFound',
    message: `${qualified(resource.plural, resource.group)} "${name ?? ''}" not found`,
    details: detailsOf(about),
  });
}

export function badRequest(message: string): StatusError {
  return new StatusError({ code: 400, reason: 'BadRequest', message });
}

/** `why` follows a colon, such as `User "u" cannot get resource "pods"`. */
export function forbidden(about: Named, why: string, causes?: Details['causes']): StatusError {
  const { resource, name } = about;
  const what = qualified(resource.plural, resource.group);
  const which = name === undefined || name === '' ? what : `${what} "${name}"`;
  return new StatusError({
    code: 403,
    reason: 'Forbidden',
    message: `${which} is forbidden: ${why}`,
    details: { ...detailsOf(about), ...(causes && { causes }) },
  });
}

/** For what a user may not do: `why` says what, such as `cannot get resource "pods"`. */
export function forbiddenTo(
  { user, ...about }: Named & { readonly user: { readonly name: string } },
  why: string,
): StatusError {
  return forbidden(about, `User "${user.name}" ${why}`);
}

/** Of several causes all are told at once. */
export function invalid(about: Named, causes: readonly FieldCause[]): StatusError {
  const { kind, group } = about.resource;
  return invalidAs({ kind, group, name: about.name ?? '' }, causes);
}

export interface InvalidThing {
  readonly kind: string;
  readonly group: string;
  readonly name: string;
}

/** An object of many parts can be wrong in each of them. */
const mostCauses = 200;

/** For what is no object of a resource, such as the options of a list. */
export function invalidAs({ kind, group, name }: InvalidThing, all: readonly FieldCause[]): StatusError {
  const causes = all.slice(0, mostCauses);
  const told = [...new Set(causes.map(({ field, message }) => `${field}: ${message}`))];
  if (all.length > mostCauses) told.push(`and ${all.length - mostCauses} more`);
  const list = told.length === 1 ? told[0] : `[${told.join(', ')}]`;
  return new StatusError({
    code: 422,
    reason: 'Invalid',
    message: `${qualified(kind, group)} "${name}" is invalid: ${list}`,
    details: {
      ...(name === '' ? {} : { name }),
      ...(group === '' ? {} : { group }),
      ...(kind === '' ? {} : { kind }),
      causes: distinct(causes),
    },
  });
}

/** Two rules may find the same wrong. */
function distinct(causes: readonly FieldCause[]): readonly FieldCause[] {
  return [...new Map(causes.map((cause) => [`${cause.field}: ${cause.message}`, cause])).values()].map(
    ({ reason, message, field }) => ({ reason, message, field }),
  );
}

export const modifiedMessage =
  'the object has been modified; please apply your changes to the latest version and try again';

export function conflict(about: Named, why: string): StatusError {
  const { resource, name } = about;
  return new StatusError({
    code: 409,
    reason: 'Conflict',
    message: `Operation cannot be fulfilled on ${qualified(resource.plural, resource.group)} "${name ?? ''}": ${why}`,
    details: detailsOf(about),
  });
}

/** A condition of a deletion that does not hold; the kind stands where others have the plural. */
export function preconditionFailed(about: Named, why: string): StatusError {
  const { resource, name } = about;
  return new StatusError({
    code: 409,
    reason: 'Conflict',
    message: `Operation cannot be fulfilled on ${qualified(resource.kind, resource.group)} "${name ?? ''}": ${why}`,
    details: detailsOf(about, resource.kind),
  });
}

export function alreadyExists(about: Named, how: 'there' | 'being-deleted'): StatusError {
  const { resource, name } = about;
  const prefix = how === 'there' ? '' : 'object is being deleted: ';
  return new StatusError({
    code: 409,
    reason: 'AlreadyExists',
    message: `${prefix}${qualified(resource.plural, resource.group)} "${name ?? ''}" already exists`,
    details: detailsOf(about),
  });
}

/** Chance hit a name that was taken already, again and again. */
export function noNameFound(about: Named): StatusError {
  const { resource, name } = about;
  const what = qualified(resource.plural, resource.group);
  return new StatusError({
    code: 409,
    reason: 'AlreadyExists',
    message: `${what} "${name ?? ''}" already exists, the server was not able to generate a unique name for the object`,
    details: { ...detailsOf(about), retryAfterSeconds: 1 },
  });
}

/** What was asked for is older than what the server remembers. */
export function expired(message: string, next?: StatusBody['next']): StatusError {
  return new StatusError({ code: 410, reason: 'Expired', message, ...(next && { next }) });
}

export function tooOldVersion(asked: number, oldest: number): StatusError {
  return expired(`too old resource version: ${asked} (${oldest})`);
}

/** What was asked for has not happened yet. */
export function tooLargeVersion(asked: string, current: number): StatusError {
  return new StatusError({
    code: 504,
    reason: 'Timeout',
    message: `Timeout: Too large resource version: ${asked}, current: ${current}`,
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

/** Nothing has this path. Without a name in its details, by which clients tell it from an object that is not there. */
export function noSuchPath(): StatusError {
  return new StatusError({
    code: 404,
    reason: 'NotFound',
    message: 'the server could not find the requested resource',
    details: {},
  });
}

/** Nothing can be kept right now, which may be over soon. */
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
