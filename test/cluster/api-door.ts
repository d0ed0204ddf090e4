import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { patiently } from './patiently.ts';

/** Between a client and the API server, with TLS as it is: bytes pass both ways, or neither while it is blocked. */
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
    // Behind a network that has gone silent nobody hears that the other side is gone.
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

  /** Each piece is late by what applied when it came, and none overtakes another. */
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
 * The door through which a node reaches its API server; others go past it. Shut, it refuses; frozen, it takes everything
 * and passes nothing on; and it can be slow. Connections are passed on as they are, so that certificates hold.
 */
export class ApiDoor implements AsyncDisposable {
  /** How late everything comes that the server says, from now on. A new connection costs one such delay more. */
  answerDelayMs = 0;
  readonly #target: number;
  readonly #passages = new Set<Passage>();
  #port = 0;
  #server: Server | undefined;
  #state: 'passing' | 'frozen' = 'passing';
  #accepted = 0;

  /** To the server at this address of loopback. */
  static async open(url: string): Promise<ApiDoor> {
    const door = new ApiDoor(Number(new URL(url).port));
    await door.reopen();
    return door;
  }

  private constructor(target: number) {
    this.#target = target;
  }

  /** The server's address for whoever should go through the door. */
  get url(): string {
    return `https://127.0.0.1:${this.#port}`;
  }

  /** How many connections there are through it. */
  get connections(): number {
    return this.#passages.size;
  }

  /** How many there have ever been. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Cuts all connections and refuses new ones. */
  async shut(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.cut();
    if (server !== undefined) await new Promise((resolve) => server.close(resolve));
  }

  /** At the address it had. */
  async reopen(): Promise<void> {
    if (this.#server !== undefined) return;
    await patiently('the door to open', async () => {
      const server = createServer({ allowHalfOpen: true }, (near) => this.#accept(near));
      server.listen(this.#port, '127.0.0.1');
      // Somebody may have a connection that goes out from the port just then.
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

  /** Nobody is told anything: connections stay, new ones are taken, and nothing comes through. */
  freeze(): void {
    this.#state = 'frozen';
    for (const passage of this.#passages) passage.block();
  }

  /** What waited comes through. */
  thaw(): void {
    this.#state = 'passing';
    for (const passage of this.#passages) passage.unblock();
  }

  /** New connections work; those there are stay silent for ever, as after a balancer has lost them. */
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
