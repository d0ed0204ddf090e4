import {
  type ClientReadableStream,
  credentials,
  type handleServerStreamingCall,
  type handleUnaryCall,
  type Metadata,
  makeClientConstructor,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type ServiceError,
} from '@grpc/grpc-js';
import { loadWithProtoLoader } from './wire-definitions.ts';

type Content = Record<string, unknown>;
export type GrpcJsUnary = handleUnaryCall<Content, Content>;
export type GrpcJsStream = handleServerStreamingCall<Content, Content>;

const definitions = loadWithProtoLoader();
const runtimeService = definitions['runtime.v1.RuntimeService'] as ServiceDefinition;

const limits = {
  'grpc.max_receive_message_length': 16 << 20,
  'grpc.max_send_message_length': -1,
  // A channel option that prevents two channels of one process from sharing a connection, because
  // tests count connections.
  'grpc.use_local_subchannel_pool': 1,
};

/** A real grpc-js server of CRI's runtime service with the given methods. */
export async function grpcJsServer(
  path: string,
  methods: Readonly<Record<string, GrpcJsUnary | GrpcJsStream>>,
): Promise<Server & AsyncDisposable> {
  const server = new Server(limits);
  server.addService(runtimeService, { ...methods });
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix://${path}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
  return Object.assign(server, { [Symbol.asyncDispose]: async () => server.forceShutdown() });
}

/** A real grpc-js client of CRI's runtime service. */
export interface GrpcJsClient extends Disposable {
  unary(name: string, request: Content, options?: { deadline?: Date }): GrpcJsCall;
  stream(name: string, request: Content): ClientReadableStream<Content>;
}

export interface GrpcJsCall {
  readonly answer: Promise<Content>;
  readonly trailers: Promise<Metadata>;
  cancel(): void;
}

type RawUnary = (
  request: Content,
  options: object,
  done: (error: ServiceError | null, response: Content) => void,
) => { cancel(): void; on(event: 'status', listener: (status: { metadata: Metadata }) => void): void };

export function grpcJsClient(path: string): GrpcJsClient {
  const client = new (makeClientConstructor(runtimeService, 'RuntimeService'))(
    `unix://${path}`,
    credentials.createInsecure(),
    limits,
  );
  const methods = client as unknown as Record<string, (...args: unknown[]) => unknown>;
  return {
    unary(name, request, options = {}) {
      const { promise, resolve, reject } = Promise.withResolvers<Content>();
      const raw = methods[name]?.bind(client) as RawUnary;
      const call = raw(request, options, (error, response) =>
        error === null ? resolve(response) : reject(error),
      );
      const trailers = new Promise<Metadata>((done) => call.on('status', ({ metadata }) => done(metadata)));
      return { answer: promise, trailers, cancel: () => call.cancel() };
    },
    stream: (name, request) => methods[name]?.call(client, request) as ClientReadableStream<Content>,
    [Symbol.dispose]: () => client.close(),
  };
}
