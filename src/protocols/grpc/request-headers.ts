import { encodeHeaders, type HeaderBlock, joinBlocks } from '../http2/index.ts';
import type { CallOptions } from './service.ts';

/**
 * The request headers of one gRPC method. Most are the same for every call, so they are encoded
 * once.
 */
export class RequestHeaders {
  readonly path: string;
  readonly #plain: HeaderBlock;
  /**
   * The encoded headers including the timeout of the last call; reused because calls of a method
   * nearly always have the same timeout.
   */
  #timed: { readonly timeoutMs: number; readonly block: HeaderBlock } | undefined;

  constructor(path: string) {
    this.path = path;
    this.#plain = encodeHeaders(Object.entries(headersOf(path, {})));
  }

  /** Encodes the headers of a call. Throws for metadata that cannot be sent. */
  block({ timeoutMs, metadata }: Pick<CallOptions, 'timeoutMs' | 'metadata'>): HeaderBlock {
    if (metadata !== undefined)
      return encodeHeaders(Object.entries(headersOf(this.path, { timeoutMs, metadata })));
    if (timeoutMs === undefined) return this.#plain;
    if (this.#timed?.timeoutMs !== timeoutMs) {
      const timeout = encodeHeaders([['grpc-timeout', formatTimeout(timeoutMs)]]);
      this.#timed = { timeoutMs, block: joinBlocks(this.#plain, timeout) };
    }
    return this.#timed.block;
  }
}

/** The headers of gRPC are first, and metadata cannot replace them. */
function headersOf(
  path: string,
  { timeoutMs, metadata }: Pick<CallOptions, 'timeoutMs' | 'metadata'>,
): Record<string, string> {
  const headers: Record<string, string> = {
    ':method': 'POST',
    ':scheme': 'http',
    ':authority': 'localhost',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    'user-agent': metadata?.['user-agent'] ?? 'kubeling',
  };
  if (timeoutMs !== undefined) headers['grpc-timeout'] = formatTimeout(timeoutMs);
  return { ...headers, ...metadata, ...headers };
}

/** The grpc-timeout header: a number of at most eight digits and a unit. */
const unitsMs: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

export function formatTimeout(ms: number): string {
  const roundedMs = Math.max(1, Math.ceil(ms));
  return roundedMs < 1e8 ? `${roundedMs}m` : `${Math.min(99_999_999, Math.ceil(roundedMs / 1_000))}S`;
}

/** Parses a grpc-timeout header to milliseconds; undefined when it is missing or invalid. */
export function parseTimeout(header: unknown): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(String(header)) ?? [];
  const unitMs = unitsMs[unit];
  return unitMs === undefined ? undefined : Number(digits) * unitMs;
}
