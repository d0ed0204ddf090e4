import assert from 'node:assert/strict';
import { RuntimeService, type RuntimeServiceMethods } from '../../../src/cri/index.ts';
import { realClock, seededRandom } from '../../../src/lib/index.ts';
import {
  GrpcChannel,
  type GrpcChannelOptions,
  type GrpcCode,
  GrpcError,
  GrpcServer,
  type ServiceClient,
  type ServiceImplementation,
} from '../../../src/protocols/grpc/index.ts';
import { socketFolder } from '../../fakes/socket-folder.ts';

export type Client = ServiceClient<RuntimeServiceMethods>;
export type Implementation = Partial<ServiceImplementation<RuntimeServiceMethods>>;

/**
 * A gRPC client of a runtime at a socket in a temporary directory; the test provides the server.
 */
export interface Harness extends AsyncDisposable {
  readonly path: string;
  readonly other: (name: string) => string;
  readonly channel: GrpcChannel;
  readonly client: Client;
  serve(implementation: Implementation, path?: string): Promise<GrpcServer>;
}

export function createHarness(options: Partial<GrpcChannelOptions> = {}): Harness {
  const stack = new AsyncDisposableStack();
  const folder = stack.use(socketFolder());
  const path = folder.path('runtime.sock');
  const channel = stack.use(
    new GrpcChannel({ target: `unix://${path}`, clock: realClock(), random: seededRandom(1), ...options }),
  );
  return {
    path,
    other: (name) => folder.path(name),
    channel,
    client: channel.client(RuntimeService),
    async serve(implementation, at = path) {
      const server = stack.use(new GrpcServer());
      server.add(RuntimeService, implementation as ServiceImplementation<RuntimeServiceMethods>);
      await server.listen(at);
      return server;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

export const forever = { signal: new AbortController().signal };

export const answering: Implementation = { version: async () => ({ runtimeName: 'ours' }) };

/**
 * Returns a validator for assert.rejects: a GrpcError with this code and, if given, this message.
 */
export function failsWith(code: GrpcCode, message?: RegExp): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof GrpcError, String(error));
    assert.equal(error.grpcCode, code, error.message);
    if (message !== undefined) assert.match(error.message, message);
    return true;
  };
}
