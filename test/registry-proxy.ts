import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';

export interface ProxyOptions {
  /** The port of the registry to which requests are forwarded. */
  readonly port: number;
  /** The rate limit for layers; by default unlimited. */
  readonly bytesPerSecond?: number;
}

const sliceMs = 50;

/**
 * The bytes of a response that are not sent yet, and a callback for the moment before the last byte
 * is sent.
 */
interface Passage {
  bytes: number;
  readonly passed: () => void;
}

/** A proxy of a registry that limits its speed and counts concurrent image downloads. */
export class RegistryProxy implements AsyncDisposable {
  /** The maximum number of images that were downloaded concurrently. */
  most = 0;
  bytesPerSecond: number;
  readonly #options: ProxyOptions;
  readonly #server: Server;
  readonly #underWay = new Map<string, number>();

  static async open(options: ProxyOptions): Promise<RegistryProxy> {
    const proxy = new RegistryProxy(options);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  private constructor(options: ProxyOptions) {
    this.#options = options;
    this.bytesPerSecond = options.bytesPerSecond ?? Number.POSITIVE_INFINITY;
    this.#server = createServer((asked, response) => this.#pass(asked, response));
  }

  get host(): string {
    const address = this.#server.address();
    if (address === null || typeof address === 'string')
      throw new Error('The registry proxy does not listen on a port');
    return `127.0.0.1:${address.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #pass(asked: IncomingMessage, response: ServerResponse): void {
    const { method, headers, url: path = '' } = asked;
    const image = /^\/v2\/(.+)\/(manifests|blobs)\//.exec(path)?.[1];
    const passed = image === undefined ? () => {} : this.#count(image);
    response.once('close', passed);
    const behind = request(
      { host: '127.0.0.1', port: this.#options.port, method, path, headers },
      (found) => {
        // The count is updated before the last byte is sent, because the client continues as soon
        // as it has received this byte.
        const left: Passage = {
          bytes: method === 'HEAD' ? 0 : Number(found.headers['content-length']),
          passed,
        };
        if (left.bytes === 0) passed();
        response.writeHead(found.statusCode ?? 502, found.headers);
        void this.#trickle(found, response, left);
      },
    );
    behind.on('error', () => response.destroy());
    response.on('close', () => behind.destroy());
    asked.pipe(behind);
  }

  /**
   * Counts a request of an image; the returned function ends the count and may be called
   * repeatedly.
   */
  #count(image: string): () => void {
    this.#underWay.set(image, (this.#underWay.get(image) ?? 0) + 1);
    this.most = Math.max(this.most, this.#underWay.size);
    let isUnderWay = true;
    return () => {
      if (!isUnderWay) return;
      isUnderWay = false;
      const left = (this.#underWay.get(image) ?? 1) - 1;
      if (left > 0) this.#underWay.set(image, left);
      else this.#underWay.delete(image);
    };
  }

  async #trickle(found: IncomingMessage, response: ServerResponse, left: Passage): Promise<void> {
    try {
      for await (const chunk of found) await this.#send(chunk, response, left);
      left.passed();
      response.end();
    } catch {
      response.destroy();
    }
  }

  async #send(chunk: Buffer, response: ServerResponse, left: Passage): Promise<void> {
    for (let at = 0; at < chunk.length; ) {
      const size = Math.max(1, Math.min(chunk.length - at, (this.bytesPerSecond * sliceMs) / 1_000));
      left.bytes -= Math.min(chunk.length - at, Math.ceil(size));
      if (left.bytes <= 0) left.passed();
      response.write(chunk.subarray(at, at + Math.ceil(size)));
      at += Math.ceil(size);
      if (Number.isFinite(this.bytesPerSecond)) await new Promise((resolve) => setTimeout(resolve, sliceMs));
    }
  }
}
