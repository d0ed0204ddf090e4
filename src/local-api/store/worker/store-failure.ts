import type { Failure, FailureKind } from './messages.ts';

/** Something the thread of the store found out by itself, in words that go on after "as". */
export class StoreFailure extends Error {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string) {
    super(message);
    this.name = 'StoreFailure';
    this.kind = kind;
  }
}

/** What SQLite's primary result codes mean to us; all others are plain failures. */
const kindsByCode: ReadonlyMap<number, FailureKind> = new Map([
  [5, 'busy'],
  [11, 'corrupt'],
  [13, 'full'],
  [26, 'corrupt'],
]);

/** Anything thrown, as it crosses to the other thread. */
export function asFailure(thrown: unknown): Failure {
  if (thrown instanceof StoreFailure) return { kind: thrown.kind, message: thrown.message };
  const { errcode, code, message } = thrown as { errcode?: unknown; code?: unknown; message?: unknown };
  if (code === 'ENOSPC') return { kind: 'full', message: String(message) };
  const kind = typeof errcode === 'number' ? kindsByCode.get(errcode & 0xff) : undefined;
  return { kind: kind ?? 'failed', message: message === undefined ? String(thrown) : String(message) };
}
