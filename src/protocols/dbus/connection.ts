import { connect, type Socket } from 'node:net';
import type { Clock } from '../../lib/index.ts';
import { KubelingError, onAbort, withDeadline } from '../../lib/index.ts';
import { type DbusMessage, DbusMessageReader, encodeMessage } from './message.ts';
import type { DbusValue } from './values.ts';

export interface DbusCall {
  readonly destination: string;
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  readonly signature?: string;
  readonly body?: readonly DbusValue[];
}

export interface DbusOptions {
  /** The path of the bus socket. */
  readonly path: string;
  readonly clock: Clock;
  readonly uid: number;
  /**
   * Whether a signal is delivered to listeners, decided by its header: every user of the machine
   * may send signals to this connection. Without this function no signals are delivered.
   */
  readonly acceptsSignal?: (header: DbusMessage) => boolean;
}

const bus = {
  destination: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
};
const replyTimeoutMs = 10_000;

interface Waiting {
  readonly resolve: (message: DbusMessage) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A connection to a D-Bus message bus, for calls and signals. File descriptors are neither sent nor
 * received.
 */
export class DbusConnection implements Disposable {
  readonly #options: DbusOptions;
  readonly #socket: Socket;
  readonly #reader: DbusMessageReader;
  readonly #waiting = new Map<number, Waiting>();
  readonly #listeners = new Set<(message: DbusMessage) => void>();
  #serial = 0;
  #failure: KubelingError | undefined;
  /** Resolves, never rejects, when the connection is closed. */
  readonly closed: Promise<void>;

  /** Connects to the bus. Rejects with DBUS_UNAVAILABLE. */
  static async open(options: DbusOptions, signal: AbortSignal): Promise<DbusConnection> {
    const deadline = { clock: options.clock, ms: replyTimeoutMs, what: 'connect to the message bus' };
    const socket = await withDeadline(deadline, (inner) => authenticate(options, inner), signal);
    const connection = new DbusConnection(options, socket);
    try {
      await connection.call({ ...bus, member: 'Hello' }, signal);
    } catch (error) {
      connection[Symbol.dispose]();
      throw error;
    }
    return connection;
  }

  private constructor(options: DbusOptions, socket: Socket) {
    this.#options = options;
    this.#socket = socket;
    this.#reader = new DbusMessageReader((header) => this.#accepts(header));
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
    socket.on('data', (bytes: Buffer) => this.#received(bytes));
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('the bus closed the connection')));
  }

  /**
   * Calls a method and returns the body of the reply. Rejects with DBUS_REFUSED for an error reply,
   * whose name is in the details, and with DBUS_UNAVAILABLE if there is no reply.
   */
  async call(call: DbusCall, signal: AbortSignal): Promise<readonly DbusValue[]> {
    if (this.#failure !== undefined) throw this.#failure;
    const serial = ++this.#serial;
    const what = `have an answer of ${call.destination} to ${call.member}`;
    try {
      const { body = [] } = await withDeadline(
        { clock: this.#options.clock, ms: replyTimeoutMs, what },
        () =>
          new Promise<DbusMessage>((resolve, reject) => {
            this.#waiting.set(serial, { resolve, reject });
            this.#socket.write(encodeMessage({ type: 'call', serial, ...call }));
          }),
        signal,
      );
      return body;
    } finally {
      this.#waiting.delete(serial);
    }
  }

  /** Subscribes to signals that match the rule, in the match rule syntax of D-Bus. */
  async addMatch(rule: string, signal: AbortSignal): Promise<void> {
    await this.call({ ...bus, member: 'AddMatch', signature: 's', body: [rule] }, signal);
  }

  /** Calls the listener with every accepted signal. The listener must not throw. */
  onMessage(listener: (message: DbusMessage) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }

  #received(bytes: Buffer): void {
    try {
      for (const message of this.#reader.push(bytes)) this.#handle(message);
    } catch (error) {
      this.#fail(error);
      this.#socket.destroy();
    }
  }

  /** Only replies to pending calls are accepted; calls from other clients are ignored. */
  #accepts(header: DbusMessage): boolean {
    if (header.type === 'return' || header.type === 'error')
      return this.#waiting.has(header.replySerial ?? 0);
    return header.type === 'signal' && this.#options.acceptsSignal?.(header) === true;
  }

  #handle(message: DbusMessage): void {
    const waiting = this.#waiting.get(message.replySerial ?? 0);
    if (message.type === 'return') waiting?.resolve(message);
    else if (message.type === 'error') waiting?.reject(errorReply(message));
    else for (const listener of this.#listeners) listener(message);
  }

  #fail(cause: unknown): void {
    this.#failure ??= unavailable(this.#options.path, cause);
    for (const { reject } of this.#waiting.values()) reject(this.#failure);
    this.#waiting.clear();
  }
}

function errorReply({ errorName = 'an error', body: [text] = [] }: DbusMessage): KubelingError {
  const message = `The message bus answers ${errorName}: ${String(text ?? '')}`;
  return new KubelingError('DBUS_REFUSED', message, { details: { name: errorName } });
}

function unavailable(path: string, cause: unknown): KubelingError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new KubelingError('DBUS_UNAVAILABLE', `Cannot use the message bus at ${path}: ${why}`, { cause });
}

/**
 * The bus authenticates this process by the credentials of the socket; the exchanged texts do not
 * matter.
 */
function authenticate({ path, uid }: DbusOptions, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    const fail = (cause: unknown) => {
      aborted[Symbol.dispose]();
      socket.destroy();
      reject(signal.aborted ? signal.reason : unavailable(path, cause));
    };
    const aborted = onAbort(signal, () => queueMicrotask(() => fail(signal.reason)));
    let received = '';
    const receive = (bytes: Buffer) => {
      received += bytes.toString('latin1');
      if (!received.includes('\r\n')) return;
      if (!received.startsWith('OK '))
        return fail(new Error(`it rejects the authentication: ${received.trim().slice(0, 200)}`));
      aborted[Symbol.dispose]();
      socket.removeAllListeners();
      socket.write('BEGIN\r\n');
      resolve(socket);
    };
    socket.on('error', fail);
    socket.on('close', () => fail(new Error('the bus closed the connection')));
    socket.on('data', receive);
    socket.on('connect', () => {
      socket.write(`\0AUTH EXTERNAL ${Buffer.from(String(uid)).toString('hex')}\r\n`);
    });
  });
}
