import { type ErrorCode, isKind, KubelingError } from '../lib/index.ts';
import { type GrpcCode, GrpcError } from '../protocols/grpc/index.ts';
import { type CriOperation, operationNames } from './operations.ts';

const codes: { readonly [Code in GrpcCode]: ErrorCode } = {
  OK: 'BUG',
  CANCELLED: 'CANCELLED',
  UNKNOWN: 'CRI_FAILED',
  INVALID_ARGUMENT: 'CRI_INVALID',
  DEADLINE_EXCEEDED: 'CRI_DEADLINE',
  NOT_FOUND: 'CRI_NOT_FOUND',
  ALREADY_EXISTS: 'CRI_ALREADY_EXISTS',
  PERMISSION_DENIED: 'CRI_DENIED',
  RESOURCE_EXHAUSTED: 'CRI_EXHAUSTED',
  FAILED_PRECONDITION: 'CRI_FAILED',
  ABORTED: 'CRI_FAILED',
  OUT_OF_RANGE: 'CRI_INVALID',
  UNIMPLEMENTED: 'CRI_UNSUPPORTED',
  INTERNAL: 'CRI_FAILED',
  UNAVAILABLE: 'CRI_UNAVAILABLE',
  DATA_LOSS: 'CRI_FAILED',
  UNAUTHENTICATED: 'CRI_DENIED',
};

/**
 * Converts a failed call to a KubelingError. Keeps the runtime's message, which appears in events
 * and in the pod's status. `signal` is the caller's signal: its abort is a cancellation.
 */
export function translateError(operation: CriOperation, error: unknown, signal: AbortSignal): KubelingError {
  if (error instanceof KubelingError && error.code !== 'DEADLINE_EXCEEDED') return error;
  const grpcCode = grpcCodeOf(error, signal);
  const message = error instanceof Error ? error.message : String(error);
  const options = { cause: error, details: { operation: operationNames[operation], grpcCode } };
  if (operation === 'execSync' && (grpcCode === 'DEADLINE_EXCEEDED' || isExecTimeout(message))) {
    return new KubelingError('CRI_EXEC_TIMEOUT', `command timed out: ${message}`, options);
  }
  return new KubelingError(codeOf(grpcCode, message), message, options);
}

function codeOf(grpcCode: GrpcCode, message: string): ErrorCode {
  if (grpcCode === 'RESOURCE_EXHAUSTED' && /message (is )?larger than/.test(message)) return 'CRI_TOO_LARGE';
  return isStarting(grpcCode, message) ? 'CRI_UNAVAILABLE' : codes[grpcCode];
}

/** containerd rejects calls while it loads its state; the call succeeds when retried. */
function isStarting(grpcCode: GrpcCode, message: string): boolean {
  return grpcCode === 'UNKNOWN' && message.includes('server is not initialized yet');
}

function grpcCodeOf(error: unknown, signal: AbortSignal): GrpcCode {
  if (error instanceof GrpcError) return error.grpcCode;
  if (error instanceof KubelingError || isTimeout(error)) return 'DEADLINE_EXCEEDED';
  return (signal.aborted && error === signal.reason) || isKind(error, 'Cancelled') ? 'CANCELLED' : 'INTERNAL';
}

/** Whether the abort reason is that of AbortSignal.timeout. */
function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError';
}

/** Some runtimes report a command timeout without its gRPC code. */
function isExecTimeout(message: string): boolean {
  return /timeout [\d.][\w.]* exceeded/.test(message) || message.includes('context deadline exceeded');
}
