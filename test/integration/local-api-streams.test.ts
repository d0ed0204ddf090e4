import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  createServer as createPlain,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createSecure } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { apiResources } from '../../src/api/index.ts';
import { collectLogs, realClock } from '../../src/lib/index.ts';
import type { StatusError } from '../../src/local-api/api/api-types.ts';
import type {
  ApiCall,
  ObjectReader,
  ResourceEntry,
  ServerContext,
  StoredObject,
} from '../../src/local-api/api/index.ts';
import {
  createStreams,
  type KubeletDialer,
  metricsEntries,
  type StreamCall,
  type Streams,
} from '../../src/local-api/streams/index.ts';
import { CertificateFolder, type KeyPair } from '../fakes/certificate-authority.ts';

const never = new AbortController().signal;

const used = (cpu: number, memory: number) => ({
  cpu: { time: '2026-01-02T03:04:05.678Z', usageNanoCores: cpu },
  memory: { time: '2026-01-02T03:04:05Z', workingSetBytes: memory },
});
const summary = {
  node: { nodeName: 'n1', ...used(250_000_000, 10 << 20) },
  pods: [
    {
      podRef: { name: 'web', namespace: 'default', uid: 'u1' },
      containers: [
        { name: 'a', ...used(1_000_000, 2_048_000) },
        { name: 'just-started', memory: { workingSetBytes: 1 } },
      ],
    },
    { podRef: { name: 'gone', namespace: 'default', uid: 'u9' }, containers: [{ name: 'a', ...used(1, 1) }] },
  ],
};

interface Heard {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly rawHeaders: readonly string[];
  readonly by: string | undefined;
}

describe('requests the API server forwards to kubelets', { timeout: 300_000 }, () => {
  let folder: CertificateFolder;
  let kubelet: Server;
  let front: Server;
  let streams: Streams;
  let metrics: () => readonly ResourceEntry[];
  let admin: KeyPair;
  let authority: string;
  let reported: () => readonly string[] = () => [];
  const heard: Heard[] = [];
  const objects = new Map<string, StoredObject>();
  const reader: ObjectReader = {
    get: ({ plural }, _namespace, name) => objects.get(`${plural}/${name}`),
    all: ({ plural }) => [...objects].flatMap(([key, object]) => (key.startsWith(plural) ? [object] : [])),
  };

  before(async () => {
    folder = new CertificateFolder();
    const ca = folder.authority('/CN=ca');
    authority = ca.pem;
    admin = ca.issue({ subject: '/O=system:masters/CN=admin' });
    const serving = ca.issue({ subject: '/CN=n1', use: 'serverAuth', san: 'DNS:n1' });
    kubelet = createSecure(
      { ...serving, ca: authority, requestCert: true, rejectUnauthorized: true },
      (incoming, outgoing) => answerAsKubelet(incoming, outgoing),
    );
    kubelet.on('upgrade', (incoming, socket, head) => upgradeAsKubelet(incoming, socket, head));
    kubelet.listen(0, '127.0.0.1');
    await once(kubelet, 'listening');
    const { port } = kubelet.address() as AddressInfo;
    const { logger, records } = collectLogs(realClock());
    reported = () => records.toArray().map((record) => JSON.stringify(record));
    const door: KubeletDialer = {
      locate: ({ metadata }) =>
        metadata.name === 'n1' ? { host: '127.0.0.1', port, identity: 'n1' } : undefined,
      credentials: () => ({ ...admin, ca: authority }),
    };
    metrics = () => metricsEntries({ kubelet: door, clock: realClock() });
    streams = createStreams({
      kubelet: door,
      objects: reader,
      clock: realClock(),
      logger,
    });
    front = createPlain((incoming, outgoing) => {
      streams.respond(callOf(incoming), outgoing, never).catch((error) => {
        const { code, message } = (error as StatusError).status;
        outgoing.writeHead(code).end(message);
      });
    });
    front.on('upgrade', (incoming, socket, head) => {
      streams.upgrade(callOf(incoming), socket, head, never).catch((error) => {
        const { code, message } = (error as StatusError).status;
        socket.end(`HTTP/1.1 ${code} no\r\nContent-Length: ${message.length}\r\n\r\n${message}`);
      });
    });
    front.listen(0, '127.0.0.1');
    await once(front, 'listening');
    const spec = { nodeName: 'n1', containers: [{ name: 'a' }] };
    objects.set('nodes/n1', { metadata: { name: 'n1' } } as StoredObject);
    objects.set('pods/web', {
      metadata: { name: 'web', namespace: 'default', uid: 'u1' },
      spec,
    } as unknown as StoredObject);
    objects.set('pods/new', {
      metadata: { name: 'new', namespace: 'default', uid: 'u2' },
      spec: { containers: [{ name: 'a' }] },
    } as unknown as StoredObject);
  });

  after(() => {
    for (const server of [front, kubelet]) {
      server?.closeAllConnections();
      server?.close();
    }
    folder?.[Symbol.dispose]();
  });

  function note(incoming: IncomingMessage): void {
    const { method, url, headers, rawHeaders, socket } = incoming;
    const peer = (
      socket as unknown as { getPeerCertificate(): { subject?: { CN?: string } } }
    ).getPeerCertificate();
    heard.push({ method, url, headers, rawHeaders, by: peer.subject?.CN });
  }

  function answerAsKubelet(incoming: IncomingMessage, outgoing: ServerResponse): void {
    note(incoming);
    const { url = '' } = incoming;
    if (url.includes('previous=true'))
      outgoing.writeHead(400).end('previous terminated container "a" not found');
    else if (url.startsWith('/containerLogs/')) {
      outgoing.writeHead(200, { 'Content-Type': 'text/plain' });
      outgoing.write('first\n');
      setImmediate(() => outgoing.end('second\n'));
    } else if (url === '/stats/summary') outgoing.writeHead(200).end(JSON.stringify(summary));
    else if (url.startsWith('/exec/')) outgoing.writeHead(500).end('Upgrade request required');
    else outgoing.writeHead(200, { 'Content-Type': 'text/plain' }).end(`you asked for ${url}`);
  }

  /** Echoes the received bytes in upper case. */
  function upgradeAsKubelet(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    note(incoming);
    if (incoming.url?.includes('command=refused') === true) {
      socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 13\r\n\r\nno such thing');
      return;
    }
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n\r\n');
    const shout = (bytes: Buffer) => socket.write(bytes.toString().toUpperCase());
    if (head.length > 0) shout(head);
    socket.on('data', shout);
    socket.on('end', () => socket.end());
  }

  /** Parses request paths as the API server does: `/<plural>/<name>/<subresource><rest>`. */
  function callOf(incoming: IncomingMessage): StreamCall {
    const url = new URL(incoming.url ?? '/', 'http://api');
    const [, plural = '', name = '', subresource = '', ...rest] = url.pathname.split('/');
    const resource = plural === 'nodes' ? apiResources.nodes : apiResources.pods;
    return {
      user: { name: 'kubeling-admin', groups: [] },
      entry: { resource } as ResourceEntry,
      namespace: plural === 'nodes' ? undefined : 'default',
      name,
      subresource,
      rest: rest.length === 0 ? '' : `/${rest.join('/')}`,
      query: url.searchParams,
      incoming,
      auditId: 'a',
    };
  }

  function address(path: string): string {
    return `http://127.0.0.1:${(front.address() as AddressInfo).port}${path}`;
  }

  /** Sends all bytes in one write and reads until the server disconnects. */
  async function raw(text: string): Promise<string> {
    const socket = connect((front.address() as AddressInfo).port, '127.0.0.1');
    socket.write(text);
    let output = '';
    socket.setEncoding('utf8').on('data', (chunk) => {
      output += chunk;
      if (output.includes('WORDS')) socket.end();
    });
    await once(socket, 'close');
    return output;
  }

  it("returns a pod log as text, requested from the kubelet with the server's certificate and the kubelet's query parameters", async () => {
    const response = await fetch(address('/pods/web/log?tailLines=5&pretty=1'), {
      headers: { authorization: 'Bearer x' },
    });
    assert.equal(response.headers.get('content-type'), 'text/plain');
    assert.equal(await response.text(), 'first\nsecond\n');
    const last = heard.at(-1);
    assert.equal(last?.url, '/containerLogs/default/web/a?tailLines=5');
    assert.equal(last?.by, 'admin');
    assert.equal(last?.headers.authorization, undefined);
  });

  it("returns the kubelet's error code, and an error for the log of an unscheduled pod", async () => {
    const refused = await fetch(address('/pods/web/log?previous=true'));
    assert.equal(refused.status, 400);
    assert.equal(await refused.text(), 'previous terminated container "a" not found');
    assert.equal((await fetch(address('/pods/new/log'))).status, 204);
    assert.equal((await fetch(address('/pods/gone/log'))).status, 404);
  });

  it('sends a log over a WebSocket after an empty first message', async () => {
    for (const [protocol, expected] of [
      ['binary.k8s.io', 'first\nsecond\n'],
      ['base64.binary.k8s.io', 'first\nsecond\n'],
    ] as const) {
      const socket = new WebSocket(address('/pods/web/log').replace('http', 'ws'), protocol);
      socket.binaryType = 'arraybuffer';
      const messages: string[] = [];
      socket.addEventListener('message', ({ data }) => {
        messages.push(
          typeof data === 'string' ? Buffer.from(data, 'base64').toString() : Buffer.from(data).toString(),
        );
      });
      await new Promise((resolve) => socket.addEventListener('close', resolve));
      assert.equal(messages[0], '');
      assert.equal(messages.join(''), expected);
    }
  });

  it('forwards an upgraded stream byte for byte, including bytes sent together with the request', async () => {
    const output = await raw(
      'POST /pods/web/exec?command=sh&command=-c&stdin=true&stdout=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\nAuthorization: Bearer secret\r\n\r\nwords',
    );
    assert.match(output, /^HTTP\/1\.1 101 Switching Protocols\r\n/);
    assert.match(output, /\r\n\r\nWORDS$/);
    const last = heard.at(-1);
    assert.equal(last?.url, '/exec/default/web/a?input=1&output=1&command=sh&command=-c');
    assert.equal(last?.headers['x-stream-protocol-version'], 'v4.channel.k8s.io');
    assert.equal(last?.headers.authorization, undefined);
    assert.ok(
      reported().some((line) => /Audit/.test(line) && /u1/.test(line) && /101/.test(line)),
      reported().join('\n'),
    );
  });

  it("returns the kubelet's rejection of an upgrade as a plain response", async () => {
    const head = 'HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n';
    const refused = await raw(`POST /pods/web/exec?command=refused ${head}`);
    assert.match(refused, /^HTTP\/1\.1 404 Not Found\r\n[\s\S]*\r\n\r\nno such thing$/);
    const unbound = await raw(`POST /pods/new/exec?command=a ${head}`);
    assert.match(unbound, /^HTTP\/1\.1 400 [\s\S]*pod new does not have a host assigned$/);
    const dry = await raw(`POST /pods/web/exec?command=a&dryRun=All ${head}`);
    assert.match(dry, /^HTTP\/1\.1 400 /);
    assert.equal((await fetch(address('/pods/web/exec?command=a'), { method: 'POST' })).status, 400);
  });

  it("proxies requests to the kubelet without the caller's credentials", async () => {
    const response = await fetch(address('/nodes/n1/proxy/pods?x=1'), {
      headers: { authorization: 'Bearer x' },
    });
    assert.equal(await response.text(), 'you asked for /pods?x=1');
    assert.equal(heard.at(-1)?.headers.authorization, undefined);
    assert.equal((await fetch(address('/nodes/n2/proxy/'))).status, 404);
  });

  it('returns node and pod metrics as measured by the kubelet, only for existing objects', async () => {
    const ask = async (plural: 'nodes' | 'pods', name?: string) => {
      const entry = metrics().find(({ resource }) => resource.plural === plural);
      const call = {
        user: { name: 'kubeling-admin', groups: [] },
        entry,
        namespace: plural === 'pods' ? 'default' : undefined,
        name,
        query: new URLSearchParams(),
      };
      const environment = { objects: reader };
      return await entry?.strategy.handlers?.['']?.(
        call as unknown as ApiCall,
        environment as unknown as ServerContext,
      );
    };
    const nodes = (await ask('nodes')) as { readonly items: readonly unknown[] };
    assert.deepEqual(nodes.items, [
      {
        kind: 'NodeMetrics',
        apiVersion: 'metrics.k8s.io/v1beta1',
        metadata: { name: 'n1', creationTimestamp: undefined },
        timestamp: '2026-01-02T03:04:05Z',
        window: '10s',
        usage: { cpu: '250000000n', memory: '10240Ki' },
      },
    ]);
    const pod = (await ask('pods', 'web')) as { readonly containers: unknown };
    assert.deepEqual(pod.containers, [{ name: 'a', usage: { cpu: '1000000n', memory: '2000Ki' } }]);
    await assert.rejects(ask('pods', 'new'), /pods.metrics.k8s.io "new" not found/);
  });
});
