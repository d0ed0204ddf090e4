import type { ServerResponse } from 'node:http';
import { type Clock, describeError, KubelingError, onAbort } from '../../lib/index.ts';
import { type StatusBody, StatusError } from '../api/api-types.ts';
import { failureStatus } from '../api/responses.ts';
import { internalError } from '../api/status-errors.ts';

/** A whole answer, ready to be sent. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** What is made piece by piece is made while it is sent. */
  readonly body: string | Uint8Array | Iterable<string>;
}

/** What every answer carries. */
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

/** A refusal in the API's own form. Whatever was thrown, there is an answer. */
export function errorReply(error: unknown): Reply {
  const status = statusOf(error);
  const reply = jsonReply(status.code, failureStatus(status));
  const after = status.details?.retryAfterSeconds;
  const headers = {
    ...reply.headers,
    ...(after === undefined ? {} : { 'Retry-After': String(after) }),
    // A body that was not read to its end must not be taken for the next request.
    ...(status.code === 413 ? { Connection: 'close' } : {}),
  };
  return { ...reply, headers };
}

export function statusOf(error: unknown): StatusBody {
  if (error instanceof StatusError) return error.status;
  if (error instanceof KubelingError && error.code === 'CANCELLED') return givenUp(error.message);
  return refusedByApi(error) ?? internalError(describeError(error)).status;
}

/** Clients come again after it. */
function givenUp(message: string): StatusBody {
  return { code: 503, reason: 'ServiceUnavailable', message, details: { retryAfterSeconds: 1 } };
}

/** Whether it was foreseen: all else is a bug, and must be heard of. */
export function isForeseen(error: unknown): boolean {
  return error instanceof StatusError || refusedByApi(error) !== undefined;
}

/** Rules that are shared with clients of the API refuse as these would hear it. */
function refusedByApi(error: unknown): StatusBody | undefined {
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
  // Text would be sent together with the headers, in an encoding that is not theirs.
  const body = bytesOf(reply);
  setCommonHeaders(outgoing, context);
  outgoing.writeHead(reply.status, { ...reply.headers, 'Content-Length': body.length });
  outgoing.end(body);
}

/** The whole body, all at once. */
export function bytesOf({ body }: Pick<Reply, 'body'>): Uint8Array {
  if (body instanceof Uint8Array) return body;
  return Buffer.from(typeof body === 'string' ? body : [...body].join(''));
}

export function setCommonHeaders(outgoing: ServerResponse, { auditId, warnings }: ReplyContext): void {
  outgoing.setHeader('Audit-Id', auditId);
  outgoing.setHeader('Cache-Control', 'no-cache, private');
  if (warnings.length > 0) outgoing.setHeader('Warning', warningHeaders(warnings));
}

const longestWarning = 256;
const mostWarningBytes = 4096;

/** In the form clients show to people; of very many only the first. */
export function warningHeaders(warnings: readonly string[]): string[] {
  const headers: string[] = [];
  let size = 0;
  for (const warning of new Set(warnings)) {
    const text = warning.replaceAll(/\p{Cc}+/gu, ' ').slice(0, longestWarning);
    const quoted = text.toWellFormed().replaceAll(/["\\]/g, (mark) => `\\${mark}`);
    // Headers are written byte by byte, so these are the bytes of UTF-8.
    const header = Buffer.from(`299 - "${quoted}"`).toString('latin1');
    size += header.length;
    if (size > mostWarningBytes) break;
    headers.push(header);
  }
  return headers;
}

/** Who takes nothing at all for so long is not coming back. */
const stalledMs = 60_000;

/** The client does not read, or hardly. */
export class StalledError extends Error {}

/** Sends what is made piece by piece, each when the client has taken the one before. The head is sent already. */
export async function sendPieces(
  outgoing: ServerResponse,
  pieces: Iterable<string>,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  try {
    // Nobody reads what follows the head of an answer to HEAD.
    for (const piece of outgoing.req.method === 'HEAD' ? [] : pieces) {
      if (outgoing.destroyed || signal.aborted) return;
      if (!outgoing.write(Buffer.from(piece))) await drained(outgoing, clock, signal);
      else await new Promise((resolve) => setImmediate(resolve));
    }
    outgoing.end();
  } catch (error) {
    if (!(error instanceof StalledError)) throw error;
    outgoing.destroy();
  }
}

/** Resolves once the client has taken all there was for it, or is gone; rejects when it takes nothing for long. */
export function drained(outgoing: ServerResponse, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (then: () => void) => {
      timer.cancel();
      link[Symbol.dispose]();
      outgoing.off('drain', done).off('close', done);
      then();
    };
    const done = () => settle(resolve);
    const timer = clock.timer(stalledMs, () => settle(() => reject(new StalledError('takes nothing'))));
    outgoing.on('drain', done).on('close', done);
    let link: Disposable = { [Symbol.dispose]: () => {} };
    link = onAbort(signal, (reason) => settle(() => reject(reason)));
  });
}
