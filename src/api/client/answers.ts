import { asError, type Clock, KubelingError, onAbort } from '../../lib/index.ts';
import type { Access } from '../credentials/credentials.ts';
import type { WireAnswer } from '../transport/connection-pool.ts';
import { expiryOf } from '../transport/failures.ts';
import { type ApiStatus, apiError } from './api-error.ts';
import { parseAnswer } from './parse-answer.ts';
import { retryAfterOf } from './retry.ts';

export interface BodyOptions {
  /** The request, for error messages. */
  readonly what: string;
  readonly limit: number;
}

/**
 * Reads the whole body as text. A body above the limit closes the connection, because the rest of
 * the body would have to be read before the connection could be reused.
 */
export async function readText(
  message: WireAnswer,
  { what, limit }: BodyOptions,
  signal: AbortSignal,
): Promise<string> {
  using _link = onAbort(signal, (reason) => message.destroy(asError(reason)));
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limit) throw bad(what, `the response must have at most ${limit} bytes: it is longer`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size).toString('utf8');
}

/** Parses a response. Errors do not quote its content, which may be a secret. */
export function decodeObject(
  text: string,
  { what, type }: { what: string; type: string | undefined },
): object {
  try {
    const value = parseAnswer(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Text that is not JSON is reported below, like any other response that is not a JSON object.
  }
  throw bad(
    what,
    `the response must be a JSON object: it is ${text.length} characters of ${type ?? 'no type'}`,
  );
}

function bad(what: string, why: string): KubelingError {
  return new KubelingError('API_BAD_ANSWER', `Cannot ${what} as ${why}`);
}

/**
 * The maximum length that is read of an error response, because the error pages of proxies can be
 * long.
 */
const longestRefusal = 64 * 1024;
const longestQuote = 200;

export interface Refusal {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  readonly error: KubelingError;
}

export interface RefusalOptions {
  readonly what: string;
  readonly access: Access;
  readonly clock: Clock;
}

/** Reads an error response. */
export async function readRefusal(
  message: WireAnswer,
  { what, access, clock }: RefusalOptions,
  signal: AbortSignal,
): Promise<Refusal> {
  const status = message.statusCode ?? 0;
  const { host } = access.context.cluster.server;
  const text = await readText(message, { what, limit: longestRefusal }, signal);
  const apiStatus = statusOf(text);
  const retryAfterMs = retryAfterOf(message.headers, apiStatus, clock);
  if (status < 400) {
    const error = bad(what, `${host} must respond itself: it responded with HTTP status ${status}`);
    return { status, retryAfterMs: undefined, error };
  }
  const why = status === 401 ? expiryOf(access, clock.now()) : undefined;
  const refusal =
    why === undefined
      ? apiStatus
      : { ...apiStatus, message: `${apiStatus.message ?? 'Unauthorized'}: ${why}` };
  return {
    status,
    retryAfterMs,
    error: apiError({ what: `${what} at ${host}`, status, apiStatus: refusal, retryAfterMs }),
  };
}

/**
 * Parses the Status object of an API server; any other text, such as the error page of a proxy,
 * becomes its message.
 */
function statusOf(text: string): ApiStatus {
  const value = parsed(text);
  if (typeof value !== 'object' || value === null) {
    const quote = text.trim().replaceAll(/\s+/g, ' ').slice(0, longestQuote);
    return quote === '' ? {} : { message: quote };
  }
  const { message, reason, details } = value as Record<string, unknown>;
  const seconds = (details as { retryAfterSeconds?: unknown } | null | undefined)?.retryAfterSeconds;
  return {
    message: typeof message === 'string' && message !== '' ? message : undefined,
    reason: typeof reason === 'string' ? reason : undefined,
    details: typeof seconds === 'number' ? { retryAfterSeconds: seconds } : undefined,
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
