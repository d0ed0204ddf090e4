import type { MessageInit, MessageType } from '../protobuf/index.ts';

/** One request, one answer. */
export interface Unary<Request, Response> {
  readonly kind: 'unary';
  readonly request: Request;
  readonly response: Response;
}

/** One request, any number of answers. */
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
  /** Told to the other side, so that it stops too; the caller's own deadline is its signal. */
  readonly timeoutMs?: number | undefined;
  /** Headers for the other side, in lower case; an implementation in this process does not see them. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/**
 * A service as its callers see it. Implementations are the wire and in-process ones alike; both throw GrpcError and
 * nothing else, but for a request that cannot be written, which is a bug of the caller. A stream ends when its source
 * ends, is closed by leaving the loop or by its signal, and never buffers without bound.
 */
export type ServiceClient<Methods> = {
  readonly [Name in keyof Methods]: Methods[Name] extends Unary<infer Request, infer Response>
    ? (request: MessageInit<Request>, options: CallOptions) => Promise<Response>
    : Methods[Name] extends ServerStream<infer Request, infer Response>
      ? (request: MessageInit<Request>, options: CallOptions) => AsyncIterable<Response>
      : never;
};

/** A service as it is implemented: whole requests in, messages with anything left out as answers. */
export type ServiceImplementation<Methods> = {
  readonly [Name in keyof Methods]: Methods[Name] extends Unary<infer Request, infer Response>
    ? (request: Request, options: CallOptions) => Promise<MessageInit<Response>>
    : Methods[Name] extends ServerStream<infer Request, infer Response>
      ? (request: Request, options: CallOptions) => AsyncIterable<MessageInit<Response>>
      : never;
};
