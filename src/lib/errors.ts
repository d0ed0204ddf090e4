import { type ErrorCode, type ErrorKind, errorKinds } from './error-codes.ts';

export interface ErrorOptions {
  readonly cause?: unknown;
  /** Facts for logs and events: names and numbers, never secrets. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** The root of all errors kubeling makes. The code is stable; the message is for people. */
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

/** The kind of anything thrown. What is not ours is a bug, except an abort, which is a cancellation. */
export function kindOf(error: unknown): ErrorKind {
  if (error instanceof KubelingError) return error.kind;
  if (error instanceof Error && error.name === 'AbortError') return 'Cancelled';
  return 'Bug';
}

export function isKind(error: unknown, ...kinds: readonly ErrorKind[]): boolean {
  return kinds.includes(kindOf(error));
}

/** One line for a person: the message, followed by the causes that add something. */
export function describeError(error: unknown): string {
  const parts: string[] = [];
  for (let at = error, depth = 0; at !== undefined && depth < 8; depth++) {
    const text = at instanceof Error ? at.message : String(at);
    if (text !== '' && !parts.some((part) => part.includes(text))) parts.push(text);
    at = at instanceof Error ? at.cause : undefined;
  }
  return parts.join(': ');
}

/** Turns anything thrown into an Error without losing it. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error
    ? thrown
    : new KubelingError('BUG', `Something threw a ${typeof thrown}: ${String(thrown)}`);
}
