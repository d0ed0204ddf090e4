import type { IncomingHttpHeaders } from 'node:http';
import { type Clock, KubelingError } from '../../lib/index.ts';
import type { ApiStatus } from './api-error.ts';
import type { PatchKind } from './client.ts';
import type { ApiResource } from './resource.ts';

/** What happens if a request reaches the server twice. */
export type Repetition =
  /** A read-only request: repeating it has no effect. */
  | 'harmless'
  /**
   * An idempotent request: after a repetition the state is the same as after one request, though
   * the response may differ: 409 or 404 instead of success. Callers handle a 409; it is not retried
   * here.
   */
  | 'same-effect'
  /**
   * A request that is not idempotent: a repetition may change the state again, for example create a
   * second object.
   */
  | 'unsafe';

/** The maximum number of retries of one call at the server's request. */
export const maxRetries = 10;
/** How often one call is retried after a broken connection, and the delays before each retry. */
const breakDelaysMs = [0, 100, 1_000] as const;

/** Review requests are queries that create no object; all other POST requests create an object. */
export function repetitionOfPost({ kind }: ApiResource): Repetition {
  return kind === 'TokenReview' || kind === 'SubjectAccessReview' ? 'harmless' : 'unsafe';
}

/** A JSON patch may append to a list, so repeating it may append twice. */
export function repetitionOfPatch(kind: PatchKind): Repetition {
  return kind === 'json' ? 'unsafe' : 'same-effect';
}

export interface Refused {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  readonly repetition: Repetition;
}

/**
 * Whether a rejected request may be sent again. With 429 and 503 the server has not processed it;
 * with other 5xx it may have.
 */
export function mayRepeatRefused({ status, retryAfterMs, repetition }: Refused): boolean {
  if (retryAfterMs === undefined) return false;
  return status === 429 || status === 503 || (status >= 500 && repetition !== 'unsafe');
}

export interface ConnectionFailure {
  /** The error code, for example ECONNRESET. */
  readonly code: string | undefined;
  /**
   * Whether the request used a new connection or a reused idle one, which the server may have
   * closed just before the request.
   */
  readonly socket: 'new' | 'reused';
  readonly repetition: Repetition;
  /** The number of connections that broke during earlier attempts of the call. */
  readonly before: number;
}

const breaks: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED']);

/** Returns the delay before the request is sent again; undefined if it must not be sent again. */
export function repeatAfterBreakMs({
  code,
  socket,
  repetition,
  before,
}: ConnectionFailure): number | undefined {
  if (!breaks.has(code)) return undefined;
  if (repetition === 'harmless') return breakDelaysMs[before];
  return repetition === 'same-effect' && socket === 'reused' && before === 0 ? 0 : undefined;
}

/**
 * Reads the retry delay from the Retry-After header (seconds or a date), or from the response body.
 */
export function retryAfterOf(
  headers: IncomingHttpHeaders,
  status: ApiStatus,
  clock: Clock,
): number | undefined {
  const header = headers['retry-after']?.trim();
  if (header !== undefined && /^\d{1,9}$/.test(header)) return Number(header) * 1_000;
  const dateMs = header === undefined ? Number.NaN : Date.parse(header);
  if (!Number.isNaN(dateMs)) return Math.max(0, dateMs - clock.now());
  const seconds = status.details?.retryAfterSeconds;
  return typeof seconds === 'number' && seconds > 0 ? seconds * 1_000 : undefined;
}

/** The error for a connection that broke before there was a response. */
export class BrokenConnection extends Error {
  readonly socket: ConnectionFailure['socket'];

  constructor(cause: unknown, socket: ConnectionFailure['socket']) {
    super('The connection broke', { cause });
    this.socket = socket;
  }

  get code(): string | undefined {
    return systemCodeOf(this.cause);
  }
}

/** Returns the error code that Node.js assigns to a socket or TLS failure. */
export function systemCodeOf(error: unknown): string | undefined {
  if (error instanceof KubelingError || typeof error !== 'object' || error === null) return undefined;
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: unknown };
  if (typeof code === 'string') return code;
  if (error instanceof AggregateError) return systemCodeOf(error.errors[0]);
  return systemCodeOf(cause);
}
