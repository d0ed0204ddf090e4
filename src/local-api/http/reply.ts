import type { ServerResponse } from 'node:http';
import { type Clock, describeError, KubelingError, nextTurn, onAbort } from '../../lib/index.ts';
import { type StatusBody, StatusError } from '../api/api-types.ts';
import { failureStatus } from '../api/responses.ts';
import { internalError } from '../api/status-errors.ts';

/** A complete HTTP response. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The response body; an iterable body is generated while it is sent. */
  readonly body: string | Uint8Array | Iterable<string>;
}

/** The headers that every response has: the audit ID and the warnings. */
export interface ReplyContext {
  readonly auditId: string;
  readonly warnings: readonly string[];
}

export function jsonReply(status: number, value: unknown, layout: 'compact' | 'indented' = 'compact'): Reply {
  const text = layout === 'indented' ? JSON.stringify(value, null, 2) : JSON.stringify(value);
  return { status, headers: { 'Content-Type': 'application/json' }, body: `${text}\n` };
}

export function textReply(status: number, body: string): Reply {
  const headers = { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' };
  return { status, headers, body };
}

/** Converts any error into a Status response. */
export function errorReply(error: unknown): Reply {
  const status = statusBodyOf(error);
  const reply = jsonReply(status.code, failureStatus(status));
  const after = status.details?.retryAfterSeconds;
  const headers = {
    ...reply.headers,
    ...(after === undefined ? {} : { 'Retry-After': String(after) }),
    // The rest of the request body is not read, so the connection is closed: otherwise the rest
    // would be parsed as the next request.
    ...(status.code === 413 ? { Connection: 'close' } : {}),
  };
  return { ...reply, headers };
}

export function statusBodyOf(error: unknown): StatusBody {
  if (error instanceof StatusError) return error.status;
  if (error instanceof KubelingError && error.code === 'CANCELLED') return cancelledStatus(error.message);
  return statusOfApiError(error) ?? internalError(describeError(error)).status;
}

/** A Status 503 for cancelled calls, after which clients retry. */
function cancelledStatus(message: string): StatusBody {
  return { code: 503, reason: 'ServiceUnavailable', message, details: { retryAfterSeconds: 1 } };
}

/**
 * Whether the error is an expected response to the client; other errors are bugs and are logged.
 */
export function isExpectedError(error: unknown): boolean {
  return error instanceof StatusError || statusOfApiError(error) !== undefined;
}

/** Errors of code shared with the API client have the HTTP status in their details. */
function statusOfApiError(error: unknown): StatusBody | undefined {
  if (!(error instanceof KubelingError) || typeof error.details['status'] !== 'number') return undefined;
  const { status, reason, retryAfterMs } = error.details;
  const seconds = typeof retryAfterMs === 'number' ? Math.ceil(retryAfterMs / 1000) : undefined;
  return {
    code: status,
    reason: typeof reason === 'string' ? reason : 'Unknown',
    message: error.message.replace(/^Cannot [^:]*: /, ''),
    ...(seconds === undefined ? {} : { details: { retryAfterSeconds: seconds } }),
  };
}

export function sendReply(outgoing: ServerResponse, reply: Reply, context: ReplyContext): void {
  if (outgoing.destroyed || outgoing.headersSent) return;
  // The body is converted to bytes, because node:http would send a string together with the
  // headers, in the encoding of the headers.
  const body = bodyBytes(reply);
  setCommonHeaders(outgoing, context);
  outgoing.writeHead(reply.status, { ...reply.headers, 'Content-Length': body.length });
  outgoing.end(body);
}

/** The body as bytes; an iterable body is generated completely. */
export function bodyBytes({ body }: Pick<Reply, 'body'>): Uint8Array {
  if (body instanceof Uint8Array) return body;
  return Buffer.from(typeof body === 'string' ? body : [...body].join(''));
}

export function setCommonHeaders(outgoing: ServerResponse, { auditId, warnings }: ReplyContext): void {
  outgoing.setHeader('Audit-Id', auditId);
  outgoing.setHeader('Cache-Control', 'no-cache, private');
  if (warnings.length > 0) outgoing.setHeader('Warning', warningHeaders(warnings));
}

const maxWarningLength = 256;
const maxWarningBytes = 4096;

/** Warning headers in the format of kubectl, limited in number and size. */
export function warningHeaders(warnings: readonly string[]): string[] {
  const headers: string[] = [];
  let size = 0;
  for (const warning of new Set(warnings)) {
    const text = warning.replaceAll(/\p{Cc}+/gu, ' ').slice(0, maxWarningLength);
    const quoted = text.toWellFormed().replaceAll(/["\\]/g, (mark) => `\\${mark}`);
    // Header strings are written as latin1, so each UTF-8 byte becomes one character.
    const header = Buffer.from(`299 - "${quoted}"`).toString('latin1');
    size += header.length;
    if (size > maxWarningBytes) break;
    headers.push(header);
  }
  return headers;
}

/** The time after which a client that reads nothing is disconnected. */
const stalledMs = 60_000;

/** The error for a client that does not read its response. */
export class StalledError extends Error {}

/**
 * Sends the chunks of a body, each after the client has read the previous one. The headers are sent
 * before.
 */
export async function sendChunks(
  outgoing: ServerResponse,
  pieces: Iterable<string>,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  try {
    // A response to HEAD has no body.
    for (const piece of outgoing.req.method === 'HEAD' ? [] : pieces) {
      if (outgoing.destroyed || signal.aborted) return;
      if (!outgoing.write(Buffer.from(piece))) await drained(outgoing, clock, signal);
      else await nextTurn();
    }
    outgoing.end();
  } catch (error) {
    if (!(error instanceof StalledError)) throw error;
    outgoing.destroy();
  }
}

/** Resolves when the socket can accept more data or is closed; rejects after a timeout. */
export function drained(outgoing: ServerResponse, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (then: () => void) => {
      timer.cancel();
      link[Symbol.dispose]();
      outgoing.off('drain', done).off('close', done);
      then();
    };
    const done = () => settle(resolve);
    const timer = clock.timer(stalledMs, () =>
      settle(() => reject(new StalledError('the client does not read'))),
    );
    outgoing.on('drain', done).on('close', done);
    let link: Disposable = { [Symbol.dispose]: () => {} };
    link = onAbort(signal, (reason) => settle(() => reject(reason)));
  });
}
