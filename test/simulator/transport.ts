import {
  Content,
  type ContentMethods,
  type CriTransport,
  Events,
  type EventsMethods,
  ImageService,
  type ImageServiceMethods,
  RuntimeService,
  type RuntimeServiceMethods,
} from '../../src/cri/index.ts';
import {
  type CallOptions,
  GrpcError,
  GrpcServer,
  type MethodType,
  type ServiceClient,
  type ServiceImplementation,
  type ServiceType,
} from '../../src/protocols/grpc/index.ts';
import type { CallGate, Handler, Origin, StreamHandler } from './calls.ts';
import type { SimulatedMethod } from './faults.ts';
import type { Handlers } from './services.ts';

export interface SimulatedServices {
  readonly gate: CallGate;
  readonly runtime: Handlers<RuntimeServiceMethods>;
  readonly image: Handlers<ImageServiceMethods>;
  readonly events: Handlers<EventsMethods>;
  readonly content: Handlers<ContentMethods>;
}

/**
 * A transport to the simulated runtime in this process. Closing it ends its calls, as when a client
 * process exits.
 */
export function inProcessTransport(services: SimulatedServices): CriTransport {
  const origin: Origin = { closed: false };
  const { gate, runtime, image, events, content } = services;
  return {
    runtime: clientOf(RuntimeService, runtime, gate, origin),
    image: clientOf(ImageService, image, gate, origin),
    containerdEvents: clientOf(Events, events, gate, origin),
    containerdContent: clientOf(Content, content, gate, origin),
    close() {
      origin.closed = true;
      gate.disconnect(new GrpcError('UNAVAILABLE', 'The connection was closed'), origin);
    },
  };
}

/** Serves the simulated runtime on a Unix socket, for any CRI client. */
export async function serveServices(
  services: SimulatedServices,
  socketPath: string,
  onBug: (method: string, error: unknown) => void,
): Promise<GrpcServer> {
  const server = new GrpcServer({ onBug });
  const origin: Origin = { closed: false };
  const { gate, runtime, image, events, content } = services;
  server.add(
    RuntimeService,
    clientOf(RuntimeService, runtime, gate, origin) as Implementation<RuntimeServiceMethods>,
  );
  server.add(
    ImageService,
    clientOf(ImageService, image, gate, origin) as Implementation<ImageServiceMethods>,
  );
  server.add(Events, clientOf(Events, events, gate, origin) as Implementation<EventsMethods>);
  server.add(Content, clientOf(Content, content, gate, origin) as Implementation<ContentMethods>);
  await server.listen(socketPath);
  return server;
}

/** The client stubs for callers in this process also implement the service on the socket. */
type Implementation<Methods> = ServiceImplementation<Methods>;

function clientOf<Methods>(
  service: ServiceType<Methods>,
  handlers: Handlers<Methods>,
  gate: CallGate,
  origin: Origin,
): ServiceClient<Methods> {
  const calls: Record<string, unknown> = {};
  for (const [key, method] of Object.entries<MethodType>(service.methods)) {
    const name = key as SimulatedMethod;
    const handler = (handlers as Readonly<Record<string, unknown>>)[key];
    calls[key] =
      method.kind === 'unary'
        ? (request: object, options: CallOptions) =>
            gate.unary(name, method, handler as Handler, request, options, origin)
        : (request: object, options: CallOptions) =>
            gate.stream(name, method, handler as StreamHandler, request, options, origin);
  }
  return calls as ServiceClient<Methods>;
}
