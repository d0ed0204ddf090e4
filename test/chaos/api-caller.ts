import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { parse } from 'yaml';

export interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

const patchType = 'application/merge-patch+json';
const answerWithinMs = 30_000;

/**
 * Sends requests to an API as the administrator of a kubeconfig. Rejects when the server does not
 * respond; error responses are returned to the caller.
 */
export class ApiCaller implements Disposable {
  readonly #server: string;
  readonly #agent: Agent;

  static async open(kubeconfig: string): Promise<ApiCaller> {
    const config = parse(await readFile(kubeconfig, 'utf8'));
    const [{ cluster }] = config.clusters;
    const [{ user }] = config.users;
    const bytes = (text: string) => Buffer.from(text, 'base64');
    return new ApiCaller(cluster.server, {
      ca: bytes(cluster['certificate-authority-data']),
      cert: bytes(user['client-certificate-data']),
      key: bytes(user['client-key-data']),
    });
  }

  private constructor(
    server: string,
    tls: { readonly ca: Buffer; readonly cert: Buffer; readonly key: Buffer },
  ) {
    this.#server = server;
    this.#agent = new Agent({ ...tls, keepAlive: true });
  }

  async call(method: string, path: string, body?: object): Promise<Answer> {
    const response = await this.#send(method, path, body, AbortSignal.timeout(answerWithinMs));
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk);
    return { status: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString()) };
  }

  /** Returns the response of a watch request; its stream stays open as long as the server runs. */
  async stream(path: string, signal: AbortSignal): Promise<IncomingMessage> {
    return await this.#send('GET', path, undefined, signal);
  }

  async #send(
    method: string,
    path: string,
    body: object | undefined,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const type = method === 'PATCH' ? patchType : 'application/json';
    const headers = body === undefined ? {} : { 'content-type': type };
    const sent = request(this.#server + path, { method, agent: this.#agent, headers, signal });
    sent.end(body === undefined ? undefined : JSON.stringify(body));
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    sent.on('error', () => {});
    return response;
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}
