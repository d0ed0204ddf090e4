import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import {
  type Clock,
  describeError,
  formatFlagHelp,
  KubelingError,
  listFlag,
  onAbort,
  stringFlag,
} from '../../lib/index.ts';
import { initContainersOf, type Pod } from '../../pods/index.ts';
import type { SpdyConnection } from '../../protocols/spdy/index.ts';
import { relay } from '../../protocols/upgrade/index.ts';
import { portForwardProtocol } from '../../server/index.ts';
import { type Command, type CommandContext, exitCodes } from '../command.ts';
import { kubeletFlags } from '../kubelet-port.ts';
import { choosePod, parseCommandLine } from './choose-pod.ts';
import { findKubelet } from './kubelet-client.ts';

const flags = {
  address: {
    kind: listFlag(stringFlag),
    help: 'Local addresses to listen on; "localhost" is both loopback addresses.',
    default: 'localhost',
  },
  namespace: { kind: stringFlag, short: 'n', help: 'The namespace of the pod; any by default.' },
  ...kubeletFlags,
};

const usage = `usage: kubeling port-forward POD [LOCAL:]REMOTE... [flags]

Forwards local ports to a running pod until Ctrl-C, which exits with 0. ":80" uses any free local port.

${formatFlagHelp(flags).trimEnd()}`;

async function run(context: CommandContext): Promise<number> {
  const { values, positionals } = parseCommandLine(flags, context.argv);
  const [key, ...written] = positionals;
  if (key === undefined || written.length === 0) {
    throw new KubelingError(
      'CLI_USAGE',
      'Name one pod and its ports: kubeling port-forward POD [LOCAL:]REMOTE...',
    );
  }
  const { clock, signal, stdout, stderr } = context;
  const kubelet = await findKubelet(values, context);
  const pod = choosePod(await kubelet.pods(signal), key, values.namespace);
  const ports = written.map((each) => readForwardedPort(each, pod));
  const path = `/portForward/${encodeURIComponent(pod.metadata.namespace)}/${encodeURIComponent(pod.metadata.name)}`;
  // Opens and closes a connection, so that an unreachable pod is reported now and not with the
  // first forwarded connection.
  (await kubelet.open(path, portForwardProtocol, signal)).close();
  await using forwarder = new PortForwarder({
    clock,
    open: (protocol, inner) => kubelet.open(path, protocol, inner),
    print: (text) => stdout.write(`${text}\n`),
    warn: (text) => stderr.write(`${text}\n`),
  });
  for (const port of ports) await listen(forwarder, values.address ?? ['localhost'], port, context);
  await new Promise<void>((resolve) => onAbort(signal, () => resolve()));
  return exitCodes.done;
}

async function listen(
  forwarder: PortForwarder,
  addresses: readonly string[],
  port: ForwardedPort,
  { stdout }: CommandContext,
): Promise<void> {
  let { local } = port;
  const failures: unknown[] = [];
  const hosts = addresses.flatMap((each) => (each === 'localhost' ? ['127.0.0.1', '::1'] : [each]));
  for (const address of hosts) {
    try {
      // All local addresses use the same port: the one that the first address got.
      local = await forwarder.listen(address, { ...port, local });
      stdout.write(
        `Forwarding from ${address.includes(':') ? `[${address}]` : address}:${local} -> ${port.remote}\n`,
      );
    } catch (error) {
      if (!isOptional(address, addresses)) throw error;
      failures.push(error);
    }
  }
  if (failures.length === hosts.length) throw failures[0];
}

/**
 * Whether the command continues without this address: `localhost` includes ::1, which a machine
 * without IPv6 lacks.
 */
function isOptional(address: string, addresses: readonly string[]): boolean {
  return address === '::1' && !addresses.includes('::1');
}

export const command: Command = {
  name: 'port-forward',
  summary: 'forward local ports to a pod',
  usage,
  run,
};

export interface PortForwarderDeps {
  readonly clock: Clock;
  /** Opens a connection to the kubelet for one forwarded connection. */
  open(protocol: string, signal: AbortSignal): Promise<SpdyConnection>;
  print(text: string): void;
  warn(text: string): void;
}

/** How long to wait for an error message after a connection has ended. */
const lastWordsMs = 1_000;

/**
 * Forwards local ports to ports of a pod. Each local connection uses a separate connection to the
 * kubelet, so that an unread or failed connection does not affect the others.
 */
class PortForwarder implements AsyncDisposable {
  readonly #deps: PortForwarderDeps;
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #end = new AbortController();

  constructor(deps: PortForwarderDeps) {
    this.#deps = deps;
  }

  /** Listens on an address and returns the local port. */
  async listen(address: string, { local, remote }: ForwardedPort): Promise<number> {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, (socket) =>
      this.#accept(socket, remote),
    );
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(local, address, () => {
        server.off('error', reject);
        server.on('error', (error) => this.#deps.warn(describeError(error)));
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
    this.#end.abort(new KubelingError('CANCELLED', 'Port forwarding has ended'));
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(
      this.#servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve()))),
    );
  }

  #accept(socket: Socket, remote: number): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
    this.#deps.print(`Handling connection for ${socket.localPort}`);
    this.#forward(socket, remote).catch((error) => {
      if (!this.#end.signal.aborted)
        this.#deps.warn(`Cannot forward to port ${remote}: ${describeError(error)}`);
      socket.resetAndDestroy();
    });
  }

  async #forward(socket: Socket, remote: number): Promise<void> {
    const { signal } = this.#end;
    using connection = await this.#deps.open(portForwardProtocol, signal);
    const port = { port: String(remote), requestID: '0' };
    const errors = connection.open({ streamType: 'error', ...port });
    errors.end();
    const message = readText(errors).catch(() => '');
    const data = connection.open({ streamType: 'data', ...port });
    const failed = message.then((words) => {
      if (words === '') return;
      this.#deps.warn(`Cannot forward to port ${remote}: ${words.trim()}`);
      socket.resetAndDestroy();
    });
    await relay(socket, data, { clock: this.#deps.clock, idleMs: 0 }, signal);
    // Waits for an error message, which may arrive after the data and would be lost when the
    // connection is closed.
    await Promise.race([failed, this.#deps.clock.sleep(lastWordsMs, signal)]);
    connection.close();
    await failed;
  }
}

export interface ForwardedPort {
  /** The local port; 0 for any free port. */
  readonly local: number;
  readonly remote: number;
}

/**
 * Parses `80`, `8080:80`, and `:80` or `0:80` for any free local port. The remote port may be the
 * name of a container port.
 */
export function readForwardedPort(text: string, pod: Pod): ForwardedPort {
  const [first = '', second, ...more] = text.split(':');
  const remote = readRemote(second ?? first, pod);
  const local = second === undefined ? remote : first === '' ? 0 : readNumber(first);
  if (remote === undefined || local === undefined || more.length > 0) {
    throw new KubelingError(
      'CLI_USAGE',
      `Cannot forward ${JSON.stringify(text)}: it must be PORT, LOCAL:PORT or :PORT, with numbers from 1 to 65535 or a name of a port of the pod`,
    );
  }
  return { local, remote };
}

function readRemote(text: string, pod: Pod): number | undefined {
  const number = readNumber(text);
  if (number !== undefined) return number === 0 ? undefined : number;
  // Sidecars are init containers with restartPolicy Always, which keep running.
  const sidecars = initContainersOf(pod).filter(({ restartPolicy }) => restartPolicy === 'Always');
  const ports = [...pod.spec.containers, ...sidecars].flatMap((container) => container.ports ?? []);
  return ports.find(({ name }) => name === text)?.containerPort;
}

function readNumber(text: string): number | undefined {
  return /^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined;
}
