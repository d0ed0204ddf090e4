import { createServer } from 'node:net';
import { KubelingError } from '../../lib/index.ts';

/** The wanted port if nobody listens there, else any that is free now. */
export async function freePort(host: string, wanted: number): Promise<number> {
  return (await tryPort(host, wanted)) ?? (await tryPort(host, 0)) ?? fail(host);
}

function tryPort(host: string, port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen({ host, port, exclusive: true }, () => {
      const address = server.address();
      const taken = typeof address === 'object' && address !== null ? address.port : undefined;
      server.close(() => resolve(taken));
    });
  });
}

function fail(host: string): never {
  throw new KubelingError('SERVER_LISTEN', `Cannot find a free port at ${host}`);
}
