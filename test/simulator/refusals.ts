import { GrpcError } from '../../src/protocols/grpc/index.ts';

/**
 * Prepends the failed operation to an error, as containerd wraps errors; the code stays the same.
 */
export function inContext(context: string, error: unknown): unknown {
  return error instanceof GrpcError
    ? new GrpcError(error.grpcCode, `${context}: ${error.message}`, error.cause)
    : error;
}

export function failed(message: string): GrpcError {
  return new GrpcError('UNKNOWN', message);
}

export function unknownMethod(method: string): GrpcError {
  return new GrpcError('UNIMPLEMENTED', `unknown method ${method} for service runtime.v1.RuntimeService`);
}
