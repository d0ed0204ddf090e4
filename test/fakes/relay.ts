import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * A proxy between a client and a server on Unix sockets: counts connections, and can cut or block
 * them.
 */
export class Relay implements AsyncDisposable {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  connections = 0;

  constructor(target: string) {
    this.#server = createServer((near) => {
      this.connections++;
      const far = connect(target);
      const pair = [near, far] as const;
      this.#pairs.add(pair);
      for (const [from, to] of [pair, [far, near]] as const) {
        from.on('error', () => to.destroy());
        from.on('close', () => {
          to.destroy();
          this.#pairs.delete(pair);
        });
        from.pipe(to);
      }
    });
  }

  async listen(path: string): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(path, resolve));
  }

  get open(): number {
    return this.#pairs.size;
  }

  /** Closes all connections, as when the server is killed. */
  cut(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
  }

  /** Blocks all data, as when the server is suspended. */
  hold(): void {
    for (const [near, far] of this.#pairs) {
      for (const socket of [near, far]) {
        socket.unpipe();
        socket.pause();
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
