import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { patiently } from './patiently.ts';

/**
 * One connection between a client and the API server. Bytes, including TLS, are forwarded both
 * ways, or not at all while the proxy is blocked.
 */
class Passage {
  readonly #near: Socket;
  readonly #far: Socket;
  #free: PromiseWithResolvers<void> | undefined;

  constructor(near: Socket, far: Socket, answerDelayMs: () => number) {
    this.#near = near;
    this.#far = far;
    this.#relay(near, far, () => 0);
    this.#relay(far, near, answerDelayMs);
    near.on('close', () => far.destroy());
    // While the network is blocked, neither side learns that the other one has closed the
    // connection.
    far.on('close', () => void this.#whenFree(() => near.destroy()));
  }

  block(): void {
    this.#free ??= Promise.withResolvers();
  }

  unblock(): void {
    this.#free?.resolve();
    this.#free = undefined;
  }

  cut(): void {
    this.#near.destroy();
    this.#far.destroy();
  }

  /**
   * Each chunk is delayed by the delay that was set when it arrived, and the order of the chunks is
   * kept.
   */
  #relay(from: Socket, to: Socket, delayMs: () => number): void {
    let last: Promise<unknown> = Promise.resolve();
    const inTurn = (act: () => void) => {
      last = Promise.all([last, delay(delayMs())]).then(() => this.#whenFree(act));
    };
    from.on('error', () => {});
    from.on('data', (chunk) => inTurn(() => to.write(chunk)));
    from.on('end', () => inTurn(() => to.end()));
  }

  async #whenFree(act: () => void): Promise<void> {
    while (this.#free !== undefined) await this.#free.promise;
    act();
  }
}

/**
 * The proxy through which a node reaches its API server; other clients connect directly. It can
 * refuse connections, accept them without forwarding data, and delay data. It forwards TLS
 * unchanged, so certificates remain valid.
 */
export class ApiDoor implements AsyncDisposable {
  /**
   * Sets the delay of all data that the server sends from now on. The first request on a new
   * connection is delayed once more, because the server's part of the TLS handshake is delayed as
   * well.
   */
  answerDelayMs = 0;
  readonly #target: number;
  readonly #passages = new Set<Passage>();
  #port = 0;
  #server: Server | undefined;
  #state: 'passing' | 'frozen' = 'passing';
  #accepted = 0;

  /** Opens a proxy to the server at this loopback address. */
  static async open(url: string): Promise<ApiDoor> {
    const door = new ApiDoor(Number(new URL(url).port));
    await door.reopen();
    return door;
  }

  private constructor(target: number) {
    this.#target = target;
  }

  /** The URL of the proxy, to be used instead of the server's. */
  get url(): string {
    return `https://127.0.0.1:${this.#port}`;
  }

  /** The number of open connections through the proxy. */
  get connections(): number {
    return this.#passages.size;
  }

  /** The number of connections accepted so far. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Closes all connections and refuses new ones. */
  async shut(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.cut();
    if (server !== undefined) await new Promise((resolve) => server.close(resolve));
  }

  /** Listens again at the same address. */
  async reopen(): Promise<void> {
    if (this.#server !== undefined) return;
    await patiently('the door to open', async () => {
      const server = createServer({ allowHalfOpen: true }, (near) => this.#accept(near));
      server.listen(this.#port, '127.0.0.1');
      // Listening may fail at first, because another connection of the machine uses the port as its
      // source port.
      const opened = await once(server, 'listening').catch(() => undefined);
      if (opened === undefined) return undefined;
      this.#port = (server.address() as AddressInfo).port;
      this.#server = server;
      return true;
    });
  }

  cut(): void {
    for (const passage of this.#passages) passage.cut();
  }

  /**
   * Blocks all data without closing anything: existing connections stay open, new ones are
   * accepted.
   */
  freeze(): void {
    this.#state = 'frozen';
    for (const passage of this.#passages) passage.block();
  }

  /** Forwards the blocked data and unblocks the proxy. */
  thaw(): void {
    this.#state = 'passing';
    for (const passage of this.#passages) passage.unblock();
  }

  /**
   * Accepts new connections, while existing ones stay open without data forever, as after a restart
   * of a load balancer.
   */
  abandon(): void {
    for (const passage of this.#passages) passage.block();
    this.#state = 'passing';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.shut();
  }

  #accept(near: Socket): void {
    this.#accepted++;
    const far = connect({ port: this.#target, host: '127.0.0.1', allowHalfOpen: true });
    const passage = new Passage(near, far, () => this.answerDelayMs);
    if (this.#state === 'frozen') passage.block();
    this.#passages.add(passage);
    near.on('close', () => this.#passages.delete(passage));
  }
}
