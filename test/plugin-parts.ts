import { appendFileSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  type sendUnaryData,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

/** Loads the gRPC services of a .proto file below src. */
export function load(file: string): Record<string, unknown> {
  const proto = fileURLToPath(new URL(`../src/${file}`, import.meta.url));
  const definition = loadSync(proto, { keepCase: true, defaults: true, enums: String });
  return loadPackageDefinition(definition) as Record<string, unknown>;
}

/**
 * Records each gRPC call as a line in a log in the plugin's directory; a control file in this
 * directory makes calls fail or hang.
 */
export class CallLog {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  add(line: string): void {
    appendFileSync(join(this.#folder, 'calls.log'), `${line}\n`);
  }

  /**
   * The failure that the test requests for this method; undefined when there is none or the file is
   * still being written.
   */
  trouble(method: string): string | undefined {
    try {
      return JSON.parse(readFileSync(join(this.#folder, 'trouble.json'), 'utf8'))[method];
    } catch {
      return undefined;
    }
  }

  unary(method: string, work: (request: never) => object) {
    return (call: ServerUnaryCall<object, object>, done: sendUnaryData<object>) => {
      this.add(`${method} ${JSON.stringify(call.request)}`);
      const expected = this.trouble(method);
      if (expected === 'hang') return;
      if (expected === undefined) done(null, work(call.request as never));
      else done({ code: 2, details: expected });
    };
  }
}

export async function serve(
  at: string,
  definition: ServiceDefinition,
  implementation: object,
): Promise<void> {
  rmSync(at, { force: true });
  const server = new Server();
  server.addService(definition, implementation as never);
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix://${at}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
}

export interface PluginFacts {
  readonly type: string;
  readonly name: string;
  /** The path of the plugin's own gRPC socket. */
  readonly endpoint: string;
  readonly supported_versions: readonly string[];
}

/**
 * Serves the plugin registration API on a socket in the kubelet's registry directory and records
 * the kubelet's notifications.
 */
export async function serveRegistration(at: string, facts: PluginFacts, calls: CallLog): Promise<void> {
  const { pluginregistration } = load('plugins/proto/registration.proto') as {
    readonly pluginregistration: { readonly Registration: { readonly service: ServiceDefinition } };
  };
  await serve(at, pluginregistration.Registration.service, {
    GetInfo: (_call: unknown, done: sendUnaryData<object>) => done(null, facts),
    NotifyRegistrationStatus: (
      { request }: { readonly request: { readonly plugin_registered: boolean; readonly error: string } },
      done: sendUnaryData<object>,
    ) => {
      calls.add(request.plugin_registered ? 'registered' : `refused: ${request.error}`);
      done(null, {});
    },
  });
}
