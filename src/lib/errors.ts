import { type ErrorCode, type ErrorKind, errorKinds } from './error-codes.ts';

export interface ErrorOptions {
  readonly cause?: unknown;
  /** Details for logs and events: names and numbers, never secrets. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** The base class of all errors of kubeling. The code is stable; the message is for users. */
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
 * The kind of any thrown value. An error that is not a KubelingError is a bug, except an abort,
 * which is a cancellation.
 */
export function kindOf(error: unknown): ErrorKind {
  if (error instanceof KubelingError) return error.kind;
  if (error instanceof Error && error.name === 'AbortError') return 'Cancelled';
  return 'Bug';
}

export function isKind(error: unknown, ...kinds: readonly ErrorKind[]): boolean {
  return kinds.includes(kindOf(error));
}

/** The maximum number of causes in a description, because a chain may be cyclic. */
const maxCauseDepth = 8;

/** One line for users: the message, followed by the causes that add information. Never throws. */
export function describeError(error: unknown): string {
  const parts: string[] = [];
  for (let at = error, depth = 0; at !== undefined && depth < maxCauseDepth; depth++) {
    const text = messageOf(at);
    if (text !== '' && !parts.some((part) => part.includes(text))) parts.push(text);
    at = causeOf(at);
  }
  return parts.join(': ');
}

/** Converts any thrown value into an Error; an Error is returned unchanged. Never throws. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error
    ? thrown
    : new KubelingError('BUG', `Something threw a ${typeof thrown}: ${messageOf(thrown)}`);
}

/**
 * The text of a thrown value, which may be an object that cannot be converted to text or whose
 * getters throw.
 */
function messageOf(thrown: unknown): string {
  try {
    if (!(thrown instanceof Error)) return String(thrown);
    return thrown instanceof AggregateError ? messageOfMany(thrown) : String(thrown.message);
  } catch {
    return `an unprintable ${typeof thrown}`;
  }
}

/**
 * Failed connections to several addresses are one AggregateError without a message, so its errors
 * are described.
 */
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
