import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * The ports are below the ephemeral port range of Linux (32768 and up), so that no outgoing
 * connection uses a port between the check and its use.
 */
const firstPort = 20_000;
const lastPort = 30_000;
const attempts = 1_000;

/** Returns different loopback ports on which no process listens. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const servers = new Map<number, Server>();
  for (let attempt = 0; servers.size < count; attempt++) {
    if (attempt > attempts) throw new Error(`Cannot find ${count} free ports in ${firstPort}-${lastPort}`);
    const port = randomInt(firstPort, lastPort);
    const server = servers.has(port) ? undefined : await listening(port);
    if (server !== undefined) servers.set(port, server);
  }
  await Promise.all([...servers.values()].map((server) => new Promise((resolve) => server.close(resolve))));
  return [...servers.keys()];
}

export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  if (port === undefined) throw new Error('Cannot find a free port');
  return port;
}

async function listening(port: number): Promise<Server | undefined> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
    return server;
  } catch {
    return undefined;
  }
}
