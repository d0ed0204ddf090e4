import { execFile } from 'node:child_process';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type DbusMessage, DbusMessageReader, encodeMessage } from '../../src/protocols/dbus/index.ts';

/*
 * A fake of logind and systemd on a real D-Bus daemon: grants delay inhibitor locks as file
 * descriptors, announces shutdowns, and reads its configuration when systemd is requested to reload
 * it.
 */

/**
 * Internal classes of Node.js that send a file descriptor over a socket; no documented API can send
 * one.
 */
interface PipeHandle {
  connect(request: object, path: string): number;
  open(descriptor: number): void;
  close(): void;
  writeLatin1String(request: object, text: string, handle?: PipeHandle): number;
}
interface Internals {
  pipe_wrap: {
    readonly Pipe: new (kind: number) => PipeHandle;
    readonly PipeConnectWrap: new () => { oncomplete?: (status: number) => void };
    readonly constants: { readonly SOCKET: number; readonly IPC: number };
  };
  stream_wrap: {
    readonly WriteWrap: new () => { handle?: unknown; oncomplete?: () => void; async?: boolean };
  };
}
const internals = process as unknown as { binding<N extends keyof Internals>(name: N): Internals[N] };

const microseconds = 1_000_000;

export interface StandInOptions {
  readonly busPath: string;
  /** The directory of the lock files and of the configuration. */
  readonly directory: string;
  readonly delaySeconds: number;
}

export class StandInLogind implements AsyncDisposable {
  /** The arguments of each call of Inhibit. */
  readonly inhibits: (readonly unknown[])[] = [];
  readonly #options: StandInOptions;
  readonly #pipe: PipeHandle;
  readonly #socket: Socket;
  readonly #reader = new DbusMessageReader();
  /** The read ends of the pipes whose write ends were handed out as locks. */
  readonly #locks: number[] = [];
  #serial = 0;
  #delaySeconds: number;
  #isPreparing = false;

  static async open(options: StandInOptions): Promise<StandInLogind> {
    const { Pipe, PipeConnectWrap, constants: kinds } = internals.binding('pipe_wrap');
    const pipe = new Pipe(kinds.IPC);
    const request = new PipeConnectWrap();
    const connected = new Promise<number>((resolve) => {
      request.oncomplete = resolve;
    });
    pipe.connect(request, options.busPath);
    if ((await connected) !== 0) throw new Error(`Cannot connect to ${options.busPath}`);
    const logind = new StandInLogind(options, pipe);
    await logind.#enter();
    return logind;
  }

  private constructor(options: StandInOptions, pipe: PipeHandle) {
    this.#options = options;
    this.#delaySeconds = options.delaySeconds;
    this.#pipe = pipe;
    this.#socket = new Socket({ handle: pipe } as unknown as { fd?: number });
  }

  /** The number of inhibitor locks that clients still hold. */
  get held(): number {
    return this.#locks.filter(isHeld).length;
  }

  prepareForShutdown(isBeginning: boolean, destination?: string): void {
    this.#isPreparing = isBeginning;
    this.#send({
      type: 'signal',
      ...(destination === undefined ? {} : { destination }),
      path: '/org/freedesktop/login1',
      interface: 'org.freedesktop.login1.Manager',
      member: 'PrepareForShutdown',
      signature: 'b',
      body: [isBeginning],
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.destroy();
    for (const lock of this.#locks) closeSync(lock);
  }

  async #enter(): Promise<void> {
    const uid = Buffer.from(String(process.getuid?.() ?? 0)).toString('hex');
    await this.#ceremony(`\0AUTH EXTERNAL ${uid}\r\n`, /^OK /);
    await this.#ceremony('NEGOTIATE_UNIX_FD\r\n', /^AGREE_UNIX_FD/);
    this.#socket.write('BEGIN\r\n');
    const ready = new Promise<void>((resolve) => {
      this.#socket.on('data', (bytes: Buffer) => {
        for (const message of this.#reader.push(bytes)) {
          if (message.type === 'call') void this.#called(message);
          else if (message.replySerial === 3) resolve();
        }
      });
    });
    const bus = { destination: 'org.freedesktop.DBus', path: '/org/freedesktop/DBus' };
    const call = { type: 'call' as const, ...bus, interface: 'org.freedesktop.DBus' };
    this.#send({ ...call, member: 'Hello' });
    for (const name of ['org.freedesktop.login1', 'org.freedesktop.systemd1'])
      this.#send({ ...call, member: 'RequestName', signature: 'su', body: [name, 0] });
    await ready;
  }

  async #ceremony(line: string, expected: RegExp): Promise<void> {
    const answer = new Promise<string>((resolve) => {
      this.#socket.once('data', (bytes) => resolve(bytes.toString()));
    });
    this.#socket.write(line);
    if (!expected.test(await answer)) throw new Error(`The D-Bus daemon replied ${await answer} to ${line}`);
  }

  async #called({ member, body = [], serial: replySerial, sender: destination }: DbusMessage): Promise<void> {
    const response = { type: 'return' as const, replySerial, destination };
    if (member === 'Get') {
      const delay = { signature: 't', value: BigInt(this.#delaySeconds * microseconds) };
      const isPreparing = { signature: 'b', value: this.#isPreparing };
      this.#send({
        ...response,
        signature: 'v',
        body: [body[1] === 'PreparingForShutdown' ? isPreparing : delay],
      });
    } else if (member === 'KillUnit') {
      await this.#reload();
      this.#send(response);
    } else if (member === 'Inhibit') {
      this.inhibits.push(body);
      await this.#give(response);
    }
  }

  /** Reads InhibitDelayMaxSec from the drop-in file, as logind does. */
  async #reload(): Promise<void> {
    const text = await readFile(join(this.#options.directory, '99-kubelet.conf'), 'utf8');
    this.#delaySeconds = Number(/^InhibitDelayMaxSec=(\d+)$/m.exec(text)?.[1]);
  }

  async #give(response: Omit<DbusMessage, 'serial'>): Promise<void> {
    const path = join(this.#options.directory, `lock-${this.#locks.length}`);
    await promisify(execFile)('mkfifo', [path]);
    this.#locks.push(openSync(path, constants.O_RDONLY | constants.O_NONBLOCK));
    const { Pipe, constants: kinds } = internals.binding('pipe_wrap');
    const lock = new Pipe(kinds.SOCKET);
    lock.open(openSync(path, constants.O_WRONLY));
    this.#send({ ...response, signature: 'h', body: [0], descriptors: 1 }, lock);
  }

  #send(message: Omit<DbusMessage, 'serial'>, handle?: PipeHandle): void {
    const bytes = encodeMessage({ ...message, serial: ++this.#serial });
    if (handle === undefined) return void this.#socket.write(bytes);
    const { WriteWrap } = internals.binding('stream_wrap');
    const request = new WriteWrap();
    request.handle = this.#pipe;
    // Closes this process's copy of the descriptor after the attempt to send it.
    request.oncomplete = () => handle.close();
    this.#pipe.writeLatin1String(request, bytes.toString('latin1'), handle);
  }
}

/**
 * Whether a lock is still held: reading its pipe fails while a writer exists and returns the end of
 * file afterwards.
 */
function isHeld(descriptor: number): boolean {
  try {
    return readSync(descriptor, Buffer.alloc(1)) > 0;
  } catch {
    return true;
  }
}
