import { describeError } from '../../lib/index.ts';

export const grpcCodes = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
] as const;

export type GrpcCode = (typeof grpcCodes)[number];

/** A call that ended with a status other than OK, said by the other side or found by ourselves. */
export class GrpcError extends Error {
  readonly grpcCode: GrpcCode;
  /** Whether the other side ended the call with this status; otherwise nobody knows how it is. */
  readonly isSaid: boolean = false;

  constructor(grpcCode: GrpcCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'GrpcError';
    this.grpcCode = grpcCode;
  }

  /** As the other side told it. */
  static said(grpcCode: GrpcCode, message: string): GrpcError {
    return Object.assign(new GrpcError(grpcCode, message), { isSaid: true });
  }
}

/** In the form in which users of events know what plugins and drivers say. */
export function describeStatus(code: GrpcCode, message: string): string {
  return `rpc error: code = ${shownCode(code)} desc = ${message}`;
}

/** What has made a call fail, in those words if it is a status. */
export function describeCallError(error: unknown): string {
  return error instanceof GrpcError ? describeStatus(error.grpcCode, error.message) : describeError(error);
}

/** As the API and metrics spell it. */
export function shownCode(code: GrpcCode): string {
  if (code === 'OK') return code;
  if (code === 'CANCELLED') return 'Canceled';
  return code
    .split('_')
    .map((word) => `${word.slice(0, 1)}${word.slice(1).toLowerCase()}`)
    .join('');
}

export function grpcCodeOf(number: number): GrpcCode {
  return grpcCodes[number] ?? 'UNKNOWN';
}

export function numberOfGrpcCode(code: GrpcCode): number {
  return grpcCodes.indexOf(code);
}

/** Status messages travel percent-encoded in a header; what is no such encoding is shown as it came. */
export function decodeStatusMessage(text: string): string {
  return text.replace(/(?:%[0-9a-fA-F]{2})+/g, (run) =>
    Buffer.from(run.replaceAll('%', ''), 'hex').toString(),
  );
}

/** A longer message than this does not fit into the headers other implementations take. */
const longestMessage = 4_096;

export function encodeStatusMessage(text: string): string {
  const shown = text.length > longestMessage ? `${text.slice(0, longestMessage)}…` : text;
  let encoded = '';
  for (const byte of Buffer.from(shown)) {
    encoded += byte >= 0x20 && byte <= 0x7e && byte !== 0x25 ? String.fromCharCode(byte) : percent(byte);
  }
  return encoded;
}

function percent(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

/** What an HTTP status without a gRPC status means, by the protocol's own table. */
export function grpcCodeOfHttp(status: number): GrpcCode {
  if (status === 400) return 'INTERNAL';
  if (status === 401) return 'UNAUTHENTICATED';
  if (status === 403) return 'PERMISSION_DENIED';
  if (status === 404) return 'UNIMPLEMENTED';
  return status === 429 || (status >= 502 && status <= 504) ? 'UNAVAILABLE' : 'UNKNOWN';
}
