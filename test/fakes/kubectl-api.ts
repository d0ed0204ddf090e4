import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';

const resource = (name: string, verbs: readonly string[]) => ({
  name,
  singularName: '',
  namespaced: true,
  kind: 'Pod',
  verbs,
});

const fixed: Readonly<Record<string, unknown>> = {
  '/api': { kind: 'APIVersions', versions: ['v1'] },
  '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: [] },
  '/api/v1': {
    kind: 'APIResourceList',
    groupVersion: 'v1',
    resources: [resource('pods', ['get', 'list']), resource('pods/exec', ['create', 'get'])],
  },
};

/**
 * The part of an API server that kubectl needs for streaming into pods: it forwards streams
 * unchanged to the kubelet.
 */
export class KubectlApi implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();
  readonly #kubelet: { readonly port: number; readonly token: string };
  /** The streaming protocols that clients requested, in order. */
  readonly spoken: string[] = [];

  static async open(kubelet: { readonly port: number; readonly token: string }): Promise<KubectlApi> {
    const api = new KubectlApi(kubelet);
    await new Promise<void>((resolve) => api.#server.listen(0, '127.0.0.1', resolve));
    return api;
  }

  private constructor(kubelet: { readonly port: number; readonly token: string }) {
    this.#kubelet = kubelet;
    this.#server = createServer((request, response) => {
      this.#answer(new URL(request.url ?? '/', 'http://x').pathname).then(
        (value) => {
          response.writeHead(value === undefined ? 404 : 200, { 'content-type': 'application/json' });
          response.end(JSON.stringify(value ?? { kind: 'Status', status: 'Failure', code: 404 }));
        },
        () => response.destroy(),
      );
    });
    this.#server.on('upgrade', (request, socket, head) => this.#pass(request, socket, head));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(path: string): Promise<unknown> {
    if (path in fixed) return fixed[path];
    const name = /\/pods\/([^/]+)$/.exec(path)?.[1];
    const headers = { authorization: `Bearer ${this.#kubelet.token}` };
    const response = await fetch(`http://127.0.0.1:${this.#kubelet.port}/pods`, { headers });
    const { items } = (await response.json()) as { items: { metadata: { name: string } }[] };
    const pod = items.find(({ metadata }) => metadata.name === name);
    return pod === undefined ? undefined : { kind: 'Pod', apiVersion: 'v1', ...pod };
  }

  #pass(request: IncomingMessage, client: Duplex, head: Buffer): void {
    const { port, token } = this.#kubelet;
    const kubelet: Socket = connect(port, '127.0.0.1');
    this.spoken.push(request.headers['sec-websocket-protocol'] ?? request.headers.upgrade ?? '');
    const lines = [`${request.method} ${kubeletPath(request.url ?? '/')} HTTP/1.1`];
    for (let at = 0; at < request.rawHeaders.length; at += 2)
      lines.push(`${request.rawHeaders[at]}: ${request.rawHeaders[at + 1]}`);
    kubelet.write(`${lines.join('\r\n')}\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    kubelet.write(head);
    for (const [from, to] of [
      [client, kubelet],
      [kubelet, client],
    ] as const) {
      this.#sockets.add(from);
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroy());
      from.pipe(to);
    }
  }
}

/** Converts the path: the API server uses the parameter `stdin`, the kubelet `input`. */
function kubeletPath(url: string): string {
  const { pathname, searchParams } = new URL(url, 'http://x');
  const [, , , , namespace, , pod, verb] = pathname.split('/');
  if (verb === 'portforward') return `/portForward/${namespace}/${pod}`;
  const query = new URLSearchParams(searchParams.getAll('command').map((word) => ['command', word]));
  for (const [theirs, ours] of [
    ['stdin', 'input'],
    ['stdout', 'output'],
    ['stderr', 'error'],
    ['tty', 'tty'],
  ] as const) {
    if (searchParams.get(theirs) === 'true') query.set(ours, '1');
  }
  return `/${verb}/${namespace}/${pod}/${searchParams.get('container')}?${query}`;
}
