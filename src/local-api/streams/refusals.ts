import { internalError, type StatusBody, StatusError } from '../api/index.ts';

/** The object that an error response names. */
export interface RefusedObject {
  /** The plural with its subresource, such as `pods/log`. */
  readonly kind: string;
  readonly name: string;
}

export function badRequest(message: string): StatusError {
  return new StatusError({ code: 400, reason: 'BadRequest', message });
}

export function notFound({ kind, name }: RefusedObject): StatusError {
  const message = `${kind} "${name}" not found`;
  return new StatusError({ code: 404, reason: 'NotFound', message, details: { name, kind } });
}

export function unavailable(message: string): StatusError {
  return new StatusError({ code: 503, reason: 'ServiceUnavailable', message });
}

/** The reason and message of the API server for an HTTP status of the kubelet. */
const responses: Readonly<Record<number, readonly [reason: string, message: string]>> = {
  401: ['Unauthorized', 'the server has asked for the client to provide credentials'],
  403: ['Forbidden', 'the kubelet denies the request'],
  404: ['NotFound', 'the server could not find the requested resource'],
  405: ['MethodNotAllowed', 'the server does not allow this method on the requested resource'],
  409: ['Conflict', 'the server reported a conflict'],
  422: ['Invalid', 'the server rejected our request due to an error in our request'],
  429: ['TooManyRequests', 'the server has received too many requests and has asked us to try again later'],
  503: ['ServiceUnavailable', 'the server is currently unable to handle the request'],
};

/** Converts an error response of the kubelet to a StatusError with its code and message. */
export function kubeletError(code: number, text: string, { kind, name }: RefusedObject): StatusError {
  if (code === 500) return internalError(text);
  if (code === 400) return badRequest(text);
  const other = [code > 500 ? 'InternalError' : 'Unknown', `the kubelet responded with ${code}`] as const;
  const [reason, message] = responses[code] ?? other;
  const why = text.trim() === '' ? '' : `: ${text.trim()}`;
  const status: StatusBody = {
    code,
    reason,
    message: `${message} ( ${kind} ${name})${why}`,
    details: { name, kind },
  };
  return new StatusError(status);
}
