import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { type Clock, describeError, KubelingError } from '../../lib/index.ts';
import type { SpdyConnection } from '../../protocols/spdy/index.ts';
import { relay } from '../../protocols/upgrade/index.ts';
import { portForwardProtocol } from '../../server/index.ts';
import type { ForwardedPort } from './forwarded-ports.ts';

export interface PortForwarderDeps {
  readonly clock: Clock;
  /** A connection to the pod's kubelet for one connection of ours. */
  open(protocol: string, signal: AbortSignal): Promise<SpdyConnection>;
  say(text: string): void;
  complain(text: string): void;
}

/** How long a pod has to tell why a connection to it has ended. */
const lastWordsMs = 1_000;

/**
 * Passes connections to ports of this machine on to ports of a pod. Each goes over a connection of its own, so that none
 * waits for another that is not read, and one that fails takes no other with it.
 */
export class PortForwarder implements AsyncDisposable {
  readonly #deps: PortForwarderDeps;
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #end = new AbortController();

  constructor(deps: PortForwarderDeps) {
    this.#deps = deps;
  }

  /** Answers the local port. */
  async listen(address: string, { local, remote }: ForwardedPort): Promise<number> {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, (socket) =>
      this.#accept(socket, remote),
    );
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(local, address, () => {
        server.off('error', reject);
        server.on('error', (error) => this.#deps.complain(describeError(error)));
        resolve();
      });
    }).catch((cause) => {
      const message = `Cannot listen on ${address} port ${local}: ${describeError(cause)}`;
      throw new KubelingError('SERVER_LISTEN', message, { cause });
    });
    this.#servers.push(server);
    return (server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new KubelingError('CANCELLED', 'Forwarding ends'));
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(
      this.#servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve()))),
    );
  }

  #accept(socket: Socket, remote: number): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
    this.#deps.say(`Handling connection for ${socket.localPort}`);
    this.#forward(socket, remote).catch((error) => {
      if (!this.#end.signal.aborted)
        this.#deps.complain(`Cannot forward to port ${remote}: ${describeError(error)}`);
      socket.resetAndDestroy();
    });
  }

  async #forward(socket: Socket, remote: number): Promise<void> {
    const { signal } = this.#end;
    using connection = await this.#deps.open(portForwardProtocol, signal);
    const port = { port: String(remote), requestID: '0' };
    const errors = connection.open({ streamType: 'error', ...port });
    errors.end();
    const said = readText(errors).catch(() => '');
    const data = connection.open({ streamType: 'data', ...port });
    const failed = said.then((words) => {
      if (words === '') return;
      this.#deps.complain(`Cannot forward to port ${remote}: ${words.trim()}`);
      socket.resetAndDestroy();
    });
    await relay(socket, data, { clock: this.#deps.clock, idleMs: 0 }, signal);
    // Why it has ended may be told only now, and would be lost with the connection.
    await Promise.race([failed, this.#deps.clock.sleep(lastWordsMs, signal)]);
    connection.close();
    await failed;
  }
}
