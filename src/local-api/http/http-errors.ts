import type { ApiUser } from '../api/api-types.ts';
import { StatusError } from '../api/api-types.ts';
import type { AccessAttributes, ResourceAccess } from '../api/auth-types.ts';
import { groupQualified, invalidFields } from '../api/status-errors.ts';

/** Errors of the HTTP layer, with the messages of kube-apiserver. */

export function notAcceptable(accepted: readonly string[]): StatusError {
  const message = `only the following media types are accepted: ${accepted.join(', ')}`;
  return new StatusError({ code: 406, reason: 'NotAcceptable', message });
}

export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`;
  return new StatusError({ code: 415, reason: 'UnsupportedMediaType', message });
}

export function tooLarge(limit: number): StatusError {
  const message = `Request entity too large: limit is ${limit}`;
  return new StatusError({ code: 413, reason: 'RequestEntityTooLarge', message });
}

export function uriTooLong(limit: number): StatusError {
  const message = `the path and query of a request without credentials must have at most ${limit} characters`;
  return new StatusError({ code: 414, reason: 'BadRequest', message });
}

export function tooManyValues(limit: number): StatusError {
  const message = `Request entity too large: the body must have at most ${limit} values`;
  return new StatusError({ code: 413, reason: 'RequestEntityTooLarge', message });
}

export function tooManyRequests(): StatusError {
  const message = 'too many requests are under way, please try again later';
  return new StatusError({
    code: 429,
    reason: 'TooManyRequests',
    message,
    details: { retryAfterSeconds: 1 },
  });
}

export function timedOut(ms: number): StatusError {
  const message = `Timeout: request did not complete within the allotted ${ms / 1000} s`;
  return new StatusError({ code: 504, reason: 'Timeout', message, details: { retryAfterSeconds: 1 } });
}

const reasons = [
  ['Unsupported value', 'FieldValueNotSupported'],
  ['Too long', 'FieldValueTooLong'],
  ['Forbidden', 'FieldValueForbidden'],
] as const;

/** An invalid request option; `kind` is the kind of the options, such as ListOptions. */
export function invalidOption(kind: string, field: string, message: string): StatusError {
  const reason = reasons.find(([words]) => message.startsWith(words))?.[1] ?? 'FieldValueInvalid';
  return invalidFields({ kind, group: 'meta.k8s.io', name: '' }, [{ reason, field, message }]);
}

export function accessDenied(
  user: ApiUser,
  attributes: AccessAttributes,
  reason: string | undefined,
): StatusError {
  const because = reason === undefined || reason === '' ? '' : `: ${reason}`;
  if (attributes.to === 'path') {
    const message = `forbidden: User "${user.name}" cannot ${attributes.verb} path "${attributes.path}"${because}`;
    return new StatusError({ code: 403, reason: 'Forbidden', message, details: {} });
  }
  const { group, resource, name } = attributes;
  const what = groupQualified(resource, group);
  const which = name === '' ? what : `${what} "${name}"`;
  return new StatusError({
    code: 403,
    reason: 'Forbidden',
    message: `${which} is forbidden: User "${user.name}" cannot ${describeAccess(attributes)}${because}`,
    details: { ...(name === '' ? {} : { name }), ...(group === '' ? {} : { group }), kind: resource },
  });
}

function describeAccess(attributes: ResourceAccess): string {
  const { group, resource, subresource, namespace, verb } = attributes;
  const target = subresource === '' ? resource : `${resource}/${subresource}`;
  const scope = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`;
  return `${verb} resource "${target}" in API group "${group}" ${scope}`;
}
