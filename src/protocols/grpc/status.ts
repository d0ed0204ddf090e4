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

/** A call that ended with a status other than OK, from the peer or from this client. */
export class GrpcError extends Error {
  readonly grpcCode: GrpcCode;
  /** Whether the peer returned this status; otherwise the result of the call is unknown. */
  readonly isFromPeer: boolean = false;

  constructor(grpcCode: GrpcCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'GrpcError';
    this.grpcCode = grpcCode;
  }

  /** As the peer returned it. */
  static fromPeer(grpcCode: GrpcCode, message: string): GrpcError {
    return Object.assign(new GrpcError(grpcCode, message), { isFromPeer: true });
  }
}

/** In the form that users know from events about plugins and drivers. */
export function describeStatus(code: GrpcCode, message: string): string {
  return `rpc error: code = ${codeText(code)} desc = ${message}`;
}

/** Why a call failed, in that form if it is a status. */
export function describeCallError(error: unknown): string {
  return error instanceof GrpcError ? describeStatus(error.grpcCode, error.message) : describeError(error);
}

/** As the API and metrics spell it. */
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

/** Status messages are percent-encoded in a header; an invalid escape is shown as it is. */
export function decodeStatusMessage(text: string): string {
  return text.replace(/(?:%[0-9a-fA-F]{2})+/g, (run) =>
    Buffer.from(run.replaceAll('%', ''), 'hex').toString(),
  );
}

/** A longer message exceeds the header limits of other implementations. */
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

/** The code for an HTTP status without a gRPC status, according to the protocol. */
export function grpcCodeOfHttp(status: number): GrpcCode {
  if (status === 400) return 'INTERNAL';
  if (status === 401) return 'UNAUTHENTICATED';
  if (status === 403) return 'PERMISSION_DENIED';
  if (status === 404) return 'UNIMPLEMENTED';
  return status === 429 || (status >= 502 && status <= 504) ? 'UNAVAILABLE' : 'UNKNOWN';
}
