/**
 * Prints the CPU time of one CRI call in microseconds. usage: client-cpu.ts ours|grpcjs SOCKET CALL
 * COUNT CONTAINER [AT_ONCE]
 */
import { fileURLToPath } from 'node:url';
import { createCriClient, wireTransport } from '../src/cri/index.ts';
import { realClock, systemRandom } from '../src/lib/index.ts';

const [, , client, socket = '', call = '', count = '1000', containerId = '', atOnce = '1'] = process.argv;
const request = call === 'containerStatus' ? { containerId } : {};

type Call = () => Promise<unknown>;

function ours(): Call {
  const clock = realClock();
  const transport = wireTransport({ endpoint: socket, clock, random: systemRandom() });
  const cri = createCriClient({ transport, clock });
  const signal = new AbortController().signal;
  const method = cri[call as 'version'] as (request: object, signal: AbortSignal) => Promise<unknown>;
  return () => method(request, signal);
}

/**
 * grpc-js as most programs use it: proto definitions loaded at run time, no deadlines, no
 * validation of responses.
 */
async function grpcjs(): Promise<Call> {
  const { default: grpc } = await import('@grpc/grpc-js');
  const { default: loader } = await import('@grpc/proto-loader');
  const folder = fileURLToPath(new URL('../src/cri/proto', import.meta.url));
  const definition = await loader.load('services.proto', { includeDirs: [folder] });
  const loaded = grpc.loadPackageDefinition(definition) as unknown as {
    runtime: {
      v1: { RuntimeService: new (target: string, credentials: unknown) => Record<string, unknown> };
    };
  };
  const service = new loaded.runtime.v1.RuntimeService(`unix://${socket}`, grpc.credentials.createInsecure());
  const method = service[call] as (
    request: object,
    done: (error: unknown, response: unknown) => void,
  ) => void;
  return () =>
    new Promise((resolve, reject) =>
      method.call(service, request, (error, response) => (error ? reject(error) : resolve(response))),
    );
}

const once = client === 'ours' ? ours() : await grpcjs();
const calls = Number(count);

async function times(count: number): Promise<void> {
  let left = count;
  const caller = async () => {
    while (left-- > 0) await once();
  };
  await Promise.all(Array.from({ length: Number(atOnce) }, caller));
}

await times(calls / 4);
const before = process.cpuUsage();
await times(calls);
const { user, system } = process.cpuUsage(before);
console.log((user + system) / calls);
process.exit(0);
