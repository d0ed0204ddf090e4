import type { ClientRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { describeError, KubelingError, nodeHttp, onAbort } from '../../lib/index.ts';

/** A proxy that does not respond within this time is considered dead. */
const silenceMs = 30_000;

export interface Destination {
  readonly host: string;
  readonly port: number;
}

export type TunnelDone = (error: Error | null, socket: Socket | undefined) => void;

/** Opens CONNECT tunnels through a proxy. Tracks pending tunnels, so that they can be aborted. */
export class Tunnels {
  readonly #proxy: URL;
  readonly #pending = new Set<ClientRequest>();

  constructor(proxy: URL) {
    this.#proxy = proxy;
  }

  /** Calls `done` once with a connection to the destination, or with the reason of the failure. */
  open(to: Destination, done: TunnelDone): void {
    const request = this.#connect(to);
    this.#pending.add(request);
    request.once('close', () => this.#pending.delete(request));
    request.setTimeout(silenceMs, () =>
      request.destroy(new Error(`the proxy did not respond for ${silenceMs} ms`)),
    );
    request.on('error', (error) => done(this.#failure(describeError(error), error), undefined));
    request.once('response', (response) => {
      response.destroy();
      done(this.#failure(`it responded with HTTP status ${response.statusCode}`), undefined);
    });
    request.once('connect', (answer, socket) => {
      this.#pending.delete(request);
      socket.setTimeout(0);
      if (answer.statusCode === 200) return done(null, socket as Socket);
      socket.destroy();
      done(this.#failure(`it responded with HTTP status ${answer.statusCode}`), undefined);
    });
    request.end();
  }

  /**
   * Opens a tunnel. Rejects when the signal aborts; a connection that is established afterwards is
   * closed.
   */
  opened(to: Destination, signal: AbortSignal): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const link = onAbort(signal, reject);
      this.open(to, (error, socket) => {
        link[Symbol.dispose]();
        if (signal.aborted) socket?.destroy();
        else if (socket === undefined) reject(error);
        else resolve(socket);
      });
    });
  }

  close(): void {
    for (const request of [...this.#pending])
      request.destroy(new Error('the connection is no longer needed'));
  }

  #connect({ host, port }: Destination): ClientRequest {
    const { protocol, hostname, port: proxyPort, username, password } = this.#proxy;
    const target = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
    const who = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    const credentials = { 'proxy-authorization': `Basic ${Buffer.from(who).toString('base64')}` };
    const request = protocol === 'https:' ? tlsRequest : nodeHttp.request;
    return request({
      method: 'CONNECT',
      host: hostname.replace(/^\[|\]$/g, ''),
      port: proxyPort || (protocol === 'https:' ? 443 : 80),
      path: target,
      headers: { host: target, ...(username === '' ? {} : credentials) },
      agent: false,
    });
  }

  #failure(why: string, cause?: unknown): KubelingError {
    const message = `Cannot reach the API server through the proxy ${this.#proxy.host}: ${why}`;
    return new KubelingError('API_UNAVAILABLE', message, { cause, details: { proxy: this.#proxy.host } });
  }
}
