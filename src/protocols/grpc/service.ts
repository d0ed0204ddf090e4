import type { MessageInit, MessageType } from '../protobuf/index.ts';

/** A unary method: one request, one response. */
export interface Unary<Request, Response> {
  readonly kind: 'unary';
  readonly request: Request;
  readonly response: Response;
}

/** A server-streaming method: one request, any number of responses. */
export interface ServerStream<Request, Response> {
  readonly kind: 'server-stream';
  readonly request: Request;
  readonly response: Response;
}

export interface MethodType {
  readonly name: string;
  readonly kind: 'unary' | 'server-stream';
  readonly request: MessageType<never>;
  readonly response: MessageType<unknown>;
}

export interface ServiceType<Methods> {
  readonly fullName: string;
  readonly methods: { readonly [Name in keyof Methods]: MethodType };
}

export function serviceType<Methods>(
  fullName: string,
  methods: { readonly [Name in keyof Methods]: MethodLiteral<Methods[Name]> },
): ServiceType<Methods> {
  return { fullName, methods: methods as unknown as ServiceType<Methods>['methods'] };
}

interface MethodLiteral<Method> {
  readonly name: string;
  readonly kind: Method extends { readonly kind: infer Kind } ? Kind : never;
  readonly request: MessageType<Method extends { readonly request: infer Request } ? Request : never>;
  readonly response: MessageType<Method extends { readonly response: infer Response } ? Response : never>;
}

export interface CallOptions {
  readonly signal: AbortSignal;
  /**
   * The grpc-timeout that is sent to the server, so that it cancels the call, too; the client
   * enforces its deadline by the signal.
   */
  readonly timeoutMs?: number | undefined;
  /** Request headers in lower case; an in-process implementation does not receive them. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/**
 * A service as its clients call it, either over a connection or in-process. Calls throw only
 * GrpcErrors, except for a request that cannot be encoded, which is a bug of the caller. A response
 * stream ends when its source ends, when the caller leaves the loop or when the signal is aborted,
 * and its buffer is bounded.
 */
export type ServiceClient<Methods> = {
  readonly [Name in keyof Methods]: Methods[Name] extends Unary<infer Request, infer Response>
    ? (request: MessageInit<Request>, options: CallOptions) => Promise<Response>
    : Methods[Name] extends ServerStream<infer Request, infer Response>
      ? (request: MessageInit<Request>, options: CallOptions) => AsyncIterable<Response>
      : never;
};

/**
 * A service as it is implemented: requests are complete, and fields of responses may be missing.
 */
export type ServiceImplementation<Methods> = {
  readonly [Name in keyof Methods]: Methods[Name] extends Unary<infer Request, infer Response>
    ? (request: Request, options: CallOptions) => Promise<MessageInit<Response>>
    : Methods[Name] extends ServerStream<infer Request, infer Response>
      ? (request: Request, options: CallOptions) => AsyncIterable<MessageInit<Response>>
      : never;
};
