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

/**
 * The error of a call that ended with a status other than OK, from the peer or from this client.
 */
export class GrpcError extends Error {
  readonly grpcCode: GrpcCode;
  /**
   * Whether the peer returned this status; otherwise it is unknown whether the peer executed the
   * call.
   */
  readonly isFromPeer: boolean = false;

  constructor(grpcCode: GrpcCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'GrpcError';
    this.grpcCode = grpcCode;
  }

  /** Creates the error for a status that the peer returned. */
  static fromPeer(grpcCode: GrpcCode, message: string): GrpcError {
    return Object.assign(new GrpcError(grpcCode, message), { isFromPeer: true });
  }
}

/**
 * The text of a status in the form of gRPC for Go, which users know from events about plugins and
 * drivers.
 */
export function describeStatus(code: GrpcCode, message: string): string {
  return `rpc error: code = ${codeText(code)} desc = ${message}`;
}

/** Describes why a call failed; a gRPC status as gRPC for Go does. */
export function describeCallError(error: unknown): string {
  return error instanceof GrpcError ? describeStatus(error.grpcCode, error.message) : describeError(error);
}

/** The name of a status code as the Kubernetes API and metrics spell it. */
export function codeText(code: GrpcCode): string {
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

/** Decodes a percent-encoded status message; an invalid escape is kept as it is. */
export function decodeStatusMessage(text: string): string {
  return text.replace(/(?:%[0-9a-fA-F]{2})+/g, (run) =>
    Buffer.from(run.replaceAll('%', ''), 'hex').toString(),
  );
}

/**
 * The maximum length of a status message; a longer one exceeds the header limits of other
 * implementations.
 */
const maxMessageLength = 4_096;

export function encodeStatusMessage(text: string): string {
  const shown = text.length > maxMessageLength ? `${text.slice(0, maxMessageLength)}…` : text;
  let encoded = '';
  for (const byte of Buffer.from(shown)) {
    encoded += byte >= 0x20 && byte <= 0x7e && byte !== 0x25 ? String.fromCharCode(byte) : percent(byte);
  }
  return encoded;
}

function percent(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

/** The gRPC code for an HTTP status without a gRPC status, according to the protocol. */
export function grpcCodeOfHttp(status: number): GrpcCode {
  if (status === 400) return 'INTERNAL';
  if (status === 401) return 'UNAUTHENTICATED';
  if (status === 403) return 'PERMISSION_DENIED';
  if (status === 404) return 'UNIMPLEMENTED';
  return status === 429 || (status >= 502 && status <= 504) ? 'UNAVAILABLE' : 'UNKNOWN';
}
