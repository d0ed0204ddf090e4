import { type ErrorCode, type ErrorKind, errorKinds } from './error-codes.ts';

export interface ErrorOptions {
  readonly cause?: unknown;
  /** Details for logs and events: names and numbers, never secrets. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** The root of all errors of kubeling. The code is stable; the message is for people. */
export class KubelingError extends Error {
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'KubelingError';
    this.code = code;
    this.details = options.details ?? {};
  }

  get kind(): ErrorKind {
    return errorKinds[this.code];
  }
}

/**
 * The kind of anything thrown. A foreign error is a bug, except an abort, which is a cancellation.
 */
export function kindOf(error: unknown): ErrorKind {
  if (error instanceof KubelingError) return error.kind;
  if (error instanceof Error && error.name === 'AbortError') return 'Cancelled';
  return 'Bug';
}

export function isKind(error: unknown, ...kinds: readonly ErrorKind[]): boolean {
  return kinds.includes(kindOf(error));
}

/** Deeper causes are omitted: a chain may be endless. */
const maxCauseDepth = 8;

/** One line for people: the message, followed by the causes that add something. Never throws. */
export function describeError(error: unknown): string {
  const parts: string[] = [];
  for (let at = error, depth = 0; at !== undefined && depth < maxCauseDepth; depth++) {
    const text = messageOf(at);
    if (text !== '' && !parts.some((part) => part.includes(text))) parts.push(text);
    at = causeOf(at);
  }
  return parts.join(': ');
}

/** Converts anything thrown into an Error without losing it. Never throws. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error
    ? thrown
    : new KubelingError('BUG', `Something threw a ${typeof thrown}: ${messageOf(thrown)}`);
}

/** Anything may be thrown, even an object that cannot become text or whose getters throw. */
function messageOf(thrown: unknown): string {
  try {
    if (!(thrown instanceof Error)) return String(thrown);
    return thrown instanceof AggregateError ? messageOfMany(thrown) : String(thrown.message);
  } catch {
    return `an unprintable ${typeof thrown}`;
  }
}

/** Failed connections to several addresses are one AggregateError without a message. */
function messageOfMany(thrown: AggregateError): string {
  const each = thrown.errors.slice(0, maxCauseDepth).map(messageOf);
  return [thrown.message, each.join('; ')].filter((text) => text !== '').join(': ');
}

function causeOf(thrown: unknown): unknown {
  try {
    return thrown instanceof Error ? thrown.cause : undefined;
  } catch {
    return undefined;
  }
}

/** The `code` of an error of a system call, such as `ENOENT`. */
export function errnoOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code;
}
