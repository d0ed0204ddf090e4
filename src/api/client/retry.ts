import type { IncomingHttpHeaders } from 'node:http';
import { type Clock, KubelingError } from '../../lib/index.ts';
import type { ApiStatus } from './api-error.ts';
import type { PatchKind } from './client.ts';
import type { ApiResource } from './resource.ts';

/** What happens when a request reaches the server twice. */
export type Repetition =
  /** Nothing: it only reads. */
  | 'harmless'
  /** The same end as once, though the answer may differ: a conflict, or nothing left to delete. */
  | 'same-effect'
  /** Something else, such as a second object. */
  | 'unsafe';

/** How often one call is repeated because the server asks for it. */
export const mostRetries = 10;
/** How often one call is repeated because its connection broke, and how long it waits before each. */
const breakDelaysMs = [0, 100, 1_000] as const;

/** Reviews are answers to questions: no object comes of them. */
export function repetitionOfPost({ kind }: ApiResource): Repetition {
  return kind === 'TokenReview' || kind === 'SubjectAccessReview' ? 'harmless' : 'unsafe';
}

/** Steps of a JSON patch may add to what they added before. */
export function repetitionOfPatch(kind: PatchKind): Repetition {
  return kind === 'json' ? 'unsafe' : 'same-effect';
}

export interface Refused {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  readonly repetition: Repetition;
}

/** With 429 and 503 the server says that it did nothing; with others of 5xx it may have. */
export function mayRepeatRefused({ status, retryAfterMs, repetition }: Refused): boolean {
  if (retryAfterMs === undefined) return false;
  return status === 429 || status === 503 || (status >= 500 && repetition !== 'unsafe');
}

export interface Break {
  /** Such as ECONNRESET. */
  readonly code: string | undefined;
  /** An idle connection may have been closed by the server at the moment we took it. */
  readonly socket: 'new' | 'reused';
  readonly repetition: Repetition;
  /** How many breaks came before it. */
  readonly before: number;
}

const breaks: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED']);

/** How long to wait before the request goes out again; undefined when it must not. */
export function repeatAfterBreakMs({ code, socket, repetition, before }: Break): number | undefined {
  if (!breaks.has(code)) return undefined;
  if (repetition === 'harmless') return breakDelaysMs[before];
  return repetition === 'same-effect' && socket === 'reused' && before === 0 ? 0 : undefined;
}

/** The header in either of its forms, or the same wish in the body. */
export function retryAfterOf(
  headers: IncomingHttpHeaders,
  answer: ApiStatus,
  clock: Clock,
): number | undefined {
  const header = headers['retry-after']?.trim();
  if (header !== undefined && /^\d{1,9}$/.test(header)) return Number(header) * 1_000;
  const dateMs = header === undefined ? Number.NaN : Date.parse(header);
  if (!Number.isNaN(dateMs)) return Math.max(0, dateMs - clock.now());
  const seconds = answer.details?.retryAfterSeconds;
  return typeof seconds === 'number' && seconds > 0 ? seconds * 1_000 : undefined;
}

/** A connection that broke before there was an answer. */
export class BrokenConnection extends Error {
  readonly socket: Break['socket'];

  constructor(cause: unknown, socket: Break['socket']) {
    super('The connection broke', { cause });
    this.socket = socket;
  }

  get code(): string | undefined {
    return systemCodeOf(this.cause);
  }
}

/** The code Node.js gives to failures of sockets and TLS. */
export function systemCodeOf(error: unknown): string | undefined {
  if (error instanceof KubelingError || typeof error !== 'object' || error === null) return undefined;
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: unknown };
  if (typeof code === 'string') return code;
  if (error instanceof AggregateError) return systemCodeOf(error.errors[0]);
  return systemCodeOf(cause);
}
