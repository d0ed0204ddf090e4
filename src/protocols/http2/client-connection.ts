import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { asError } from '../../lib/index.ts';
import { ClientStream, type Http2StreamCarrier, type StreamReader } from './client-stream.ts';
import { ReceiveWindow } from './flow-control.ts';
import { Http2FrameReader } from './frame-reader.ts';
import {
  defaultPeerSettings,
  defaultWindowBytes,
  frameFlag,
  frameType,
  goAwayFrame,
  Http2Error,
  type Http2Reason,
  pingAckFrame,
  preface,
  readSettings,
  reasonOf,
  rstStreamFrame,
  settingId,
  settingsAckFrame,
  settingsFrame,
  windowUpdateFrame,
} from './frames.ts';
import { type AssembledBlock, HeaderAssembly, unpadded } from './header-assembly.ts';
import { HpackDecoder } from './hpack-decoder.ts';
import type { HeaderBlock } from './hpack-encoder.ts';
import { RequestSender, WriteBuffer } from './request-sender.ts';
import { StreamTable } from './stream-table.ts';

/** Receives the state of a connection. Must not throw. */
export interface ConnectionListener {
  /** The peer's SETTINGS have arrived. Called only once. */
  ready(): void;
  /** The connection accepts no more requests; it closes when its streams have ended. */
  draining(): void;
  /**
   * The connection has ended. Called once, as the last call; without an error if the peer closed
   * the connection normally, or no stream was open.
   */
  ended(error: Error | undefined): void;
}

export interface Http2Limits {
  /** The receive window of a stream: the limit of unread data of a slow reader. */
  readonly streamWindowBytes: number;
  /** The receive window of the connection. */
  readonly connectionWindowBytes: number;
  /** The maximum size of one header list, and of trailers. */
  readonly maxHeaderBytes: number;
  /** The last usable stream number: after that stream the connection accepts no more requests. */
  readonly lastStreamId: number;
}

export const defaultLimits: Http2Limits = {
  streamWindowBytes: 512 << 10,
  connectionWindowBytes: 4 << 20,
  maxHeaderBytes: 1 << 20,
  lastStreamId: 2 ** 31 - 1,
};

/**
 * The maximum number of reply bytes that the peer has not read; a peer that requests more replies
 * without reading them tries to exhaust the memory.
 */
const maxUnreadReplyBytes = 2 << 20;

/**
 * The client side of an HTTP/2 connection over a socket that it owns, for gRPC: requests are
 * complete, responses are streamed. Received bytes are passed to `receive`. Priorities and pushes
 * are not used.
 */
export class ClientConnection {
  readonly #socket: Duplex;
  readonly #listener: ConnectionListener;
  readonly #limits: Http2Limits;
  readonly #outbox: WriteBuffer;
  readonly #sender: RequestSender;
  readonly #reader = new Http2FrameReader((type, flags, streamId, bytes, start, end) =>
    this.#handle(type, flags, streamId, bytes, start, end),
  );
  readonly #assembly: HeaderAssembly;
  readonly #decoder: HpackDecoder;
  readonly #window: ReceiveWindow;
  readonly #streams = new StreamTable<ClientStream>();
  /** Requests that wait for the peer's settings, or until the peer reads. */
  readonly #waiting = new Set<ClientStream>();
  readonly #carrier: Http2StreamCarrier;
  #peer = defaultPeerSettings;
  #nextId = 1;
  #state: 'new' | 'ready' | 'leaving' | 'over' = 'new';
  /** The reason of the peer's GOAWAY; undefined for NO_ERROR. */
  #goAwayReason: Http2Error | undefined;

  constructor(socket: Duplex, listener: ConnectionListener, limits: Http2Limits = defaultLimits) {
    this.#socket = socket;
    this.#listener = listener;
    this.#limits = limits;
    this.#outbox = new WriteBuffer(socket);
    this.#sender = new RequestSender(this.#outbox);
    this.#assembly = new HeaderAssembly(limits.maxHeaderBytes);
    this.#decoder = new HpackDecoder(limits.maxHeaderBytes);
    this.#window = new ReceiveWindow(limits.connectionWindowBytes);
    this.#carrier = {
      grant: (stream, bytes) => this.#outbox.write(windowUpdateFrame(stream.id, bytes)),
      release: (stream, reason) => this.#release(stream, reason),
    };
    socket.on('drain', () => this.#proceed());
    socket.on('error', (error) => this.#finish(error));
    socket.on('end', () => this.#finish(this.#goAwayReason));
    socket.on('close', () => this.#finish(this.#goAwayReason));
    this.#sendPreface();
  }

  /** Whether the connection accepts requests. */
  get isUsable(): boolean {
    return this.#state === 'ready';
  }

  /**
   * Sends a request, immediately or when the peer allows it. Throws an Http2Error if it can never
   * be sent.
   */
  open(request: { readonly head: HeaderBlock; readonly body: Buffer }, reader: StreamReader): ClientStream {
    if (!this.isUsable) throw new Http2Error('REFUSED_STREAM', 'The connection takes no more requests');
    const { maxHeaderListSize } = this.#peer;
    if (request.head.listBytes > maxHeaderListSize) {
      throw new Http2Error(
        'ENHANCE_YOUR_CALM',
        `The request headers have ${request.head.listBytes} bytes, but the peer accepts at most ${maxHeaderListSize}`,
      );
    }
    const stream = new ClientStream(request, reader, this.#carrier, this.#limits.streamWindowBytes);
    if (this.#waiting.size === 0 && this.#hasFreeStream()) this.#open(stream);
    else this.#waiting.add(stream);
    return stream;
  }

  /** Processes received bytes; their buffer may be reused afterwards. */
  receive(bytes: Buffer): void {
    if (this.#state === 'over') return;
    try {
      this.#reader.push(bytes);
    } catch (error) {
      this.close(asError(error), error instanceof Http2Error ? error.reason : 'INTERNAL_ERROR');
    }
  }

  /**
   * Closes the connection and fails its streams with this error. Does nothing when it is already
   * closed.
   */
  close(error: Error, reason: Http2Reason = 'NO_ERROR'): void {
    if (this.#state === 'over') return;
    this.#outbox.write(goAwayFrame(reason));
    this.#outbox.flush();
    this.#finish(error);
  }

  #sendPreface(): void {
    const { streamWindowBytes, connectionWindowBytes, maxHeaderBytes } = this.#limits;
    this.#outbox.write(preface);
    this.#outbox.write(
      settingsFrame([
        [settingId.headerTableSize, 0],
        [settingId.enablePush, 0],
        [settingId.initialWindowSize, streamWindowBytes],
        [settingId.maxHeaderListSize, maxHeaderBytes],
      ]),
    );
    this.#outbox.write(windowUpdateFrame(0, connectionWindowBytes - defaultWindowBytes));
  }

  #hasFreeStream(): boolean {
    return this.#streams.size < this.#peer.maxConcurrentStreams && !this.#sender.isSocketFull;
  }

  #open(stream: ClientStream): void {
    stream.begin(this.#nextId, this.#peer.initialWindowSize);
    this.#nextId += 2;
    this.#streams.add(stream);
    this.#sender.begin(stream);
    if (this.#nextId > this.#limits.lastStreamId) this.#drain();
  }

  /** Sends data and waiting requests that the peer now allows. */
  #proceed(): void {
    if (this.#state === 'over') return;
    this.#sender.pump();
    for (const stream of this.#waiting) {
      if (!this.#hasFreeStream()) return;
      this.#waiting.delete(stream);
      this.#open(stream);
    }
  }

  #release(stream: ClientStream, reason: Http2Reason | undefined): void {
    if (this.#waiting.delete(stream) || !this.#streams.delete(stream.id)) return;
    this.#sender.forget(stream);
    if (this.#state === 'over') return;
    if (reason !== undefined) this.#outbox.write(rstStreamFrame(stream.id, reason));
    if (this.#waiting.size > 0) this.#proceed();
    if (this.#state === 'leaving' && this.#streams.size === 0) this.#closeSocket();
  }

  /** Waiting requests fail as not sent, so that callers may retry them on another connection. */
  #drain(): void {
    if (this.#state === 'over') return;
    const isFirst = this.#state !== 'leaving';
    this.#state = 'leaving';
    if (isFirst) this.#listener.draining();
    for (const stream of [...this.#waiting]) stream.fail(unprocessedRequest());
    if (this.#streams.size === 0) this.#closeSocket();
  }

  #closeSocket(): void {
    this.#outbox.flush();
    this.#finish(this.#goAwayReason);
  }

  #finish(error: Error | undefined): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    for (const stream of [...this.#streams.all(), ...this.#waiting]) stream.fail(error);
    this.#socket.destroy();
    this.#listener.ended(error);
  }

  #handle(type: number, flags: number, streamId: number, bytes: Buffer, start: number, end: number): void {
    if (this.#state === 'over') return;
    this.#assembly.check(type, streamId);
    switch (type) {
      case frameType.data:
        this.#receiveData(flags, streamId, bytes, start, end);
        break;
      case frameType.headers:
        this.#checkKnown('HEADERS', streamId);
        this.#receiveHeaders(this.#assembly.begin(flags, streamId, bytes, start, end));
        break;
      case frameType.continuation:
        this.#receiveHeaders(this.#assembly.proceed(flags, bytes, start, end));
        break;
      case frameType.reset:
        checkLength('RST_STREAM', end - start, 4);
        this.#checkKnown('RST_STREAM', streamId);
        this.#streams.get(streamId)?.receiveReset(reasonOf(bytes.readUInt32BE(start)));
        break;
      case frameType.settings:
        this.#receiveSettings(flags, streamId, bytes, start, end);
        break;
      case frameType.pushPromise:
        throw new Http2Error('PROTOCOL_ERROR', 'The peer sent PUSH_PROMISE although push is disabled');
      case frameType.ping:
        this.#receivePing(flags, streamId, bytes, start, end);
        break;
      case frameType.goAway:
        this.#receiveGoAway(streamId, bytes, start, end);
        break;
      case frameType.windowUpdate:
        this.#receiveGrant(streamId, bytes, start, end);
        break;
    }
  }

  #receiveData(flags: number, streamId: number, bytes: Buffer, start: number, end: number): void {
    this.#checkKnown('DATA', streamId);
    // The connection window is granted again immediately, because each stream has its own window: a
    // slow reader does not block others.
    this.#window.receive(end - start);
    const granted = this.#window.grant();
    if (granted > 0) this.#acknowledge(windowUpdateFrame(0, granted));
    const [from, to] = unpadded(flags, bytes, start, end, 0);
    this.#streams.get(streamId)?.receiveData(bytes.subarray(from, to), end - start, endOf(flags));
  }

  #receiveHeaders(assembled: AssembledBlock | undefined): void {
    if (assembled === undefined) return;
    const headers = this.#decoder.decode(assembled.block);
    this.#streams.get(assembled.streamId)?.receiveHeaders(headers, assembled.end);
  }

  #receiveSettings(flags: number, streamId: number, bytes: Buffer, start: number, end: number): void {
    checkConnection('SETTINGS', streamId);
    if ((flags & frameFlag.ack) !== 0) {
      checkLength('SETTINGS', end - start, 0);
      return;
    }
    const before = this.#peer;
    this.#peer = readSettings(before, bytes, start, end);
    const grown = this.#peer.initialWindowSize - before.initialWindowSize;
    for (const stream of this.#streams.all()) stream.sendWindow.grow(grown);
    this.#sender.tableChanged();
    this.#acknowledge(settingsAckFrame());
    if (this.#state === 'new') {
      this.#state = 'ready';
      this.#listener.ready();
    }
    this.#proceed();
  }

  #receivePing(flags: number, streamId: number, bytes: Buffer, start: number, end: number): void {
    checkConnection('PING', streamId);
    checkLength('PING', end - start, 8);
    if ((flags & frameFlag.ack) === 0) this.#acknowledge(pingAckFrame(bytes.subarray(start, end)));
  }

  #receiveGoAway(streamId: number, bytes: Buffer, start: number, end: number): void {
    checkConnection('GOAWAY', streamId);
    if (end - start < 8) checkLength('GOAWAY', end - start, 8);
    const lastId = bytes.readUInt32BE(start) & 0x7fff_ffff;
    const reason = reasonOf(bytes.readUInt32BE(start + 4));
    if (reason !== 'NO_ERROR') {
      const words = [reason, bytes.toString('utf8', start + 8, Math.min(end, start + 8 + 256))];
      this.#goAwayReason = new Http2Error(
        reason,
        `The peer closed the connection: ${words.join(' ').trim()}`,
      );
    }
    // Stops accepting requests before streams fail, so that no waiting request is sent in place of
    // a rejected one.
    this.#drain();
    for (const stream of this.#streams.all()) if (stream.id > lastId) stream.fail(unprocessedRequest());
  }

  #receiveGrant(streamId: number, bytes: Buffer, start: number, end: number): void {
    checkLength('WINDOW_UPDATE', end - start, 4);
    const granted = bytes.readUInt32BE(start) & 0x7fff_ffff;
    if (streamId === 0) {
      if (granted === 0)
        throw new Http2Error('PROTOCOL_ERROR', 'The peer sent a window update of zero bytes');
      this.#sender.receiveGrant(granted);
    } else {
      this.#checkKnown('WINDOW_UPDATE', streamId);
      this.#streams.get(streamId)?.receiveGrant(granted);
      this.#sender.pump();
    }
  }

  /** Sends a reply that the peer requested; closes the connection if the peer reads no replies. */
  #acknowledge(frame: Buffer): void {
    if (this.#outbox.waitingBytes > maxUnreadReplyBytes) {
      throw new Http2Error('ENHANCE_YOUR_CALM', 'The peer requests replies but does not read them');
    }
    this.#outbox.write(frame);
  }

  /**
   * Throws for a frame on a stream that was never opened. Frames on closed streams are expected and
   * ignored.
   */
  #checkKnown(what: string, streamId: number): void {
    if (streamId % 2 === 1 && streamId < this.#nextId) return;
    throw new Http2Error('PROTOCOL_ERROR', `The peer sent ${what} for stream ${streamId}, which never began`);
  }
}

function endOf(flags: number): 'end' | 'more' {
  return (flags & frameFlag.endStream) === 0 ? 'more' : 'end';
}

function unprocessedRequest(): Http2Error {
  return new Http2Error('REFUSED_STREAM', 'The peer closed the connection before it processed the request');
}

function checkConnection(what: string, streamId: number): void {
  if (streamId === 0) return;
  throw new Http2Error(
    'PROTOCOL_ERROR',
    `The peer sent ${what} for stream ${streamId}, but it is allowed only for the connection (stream 0)`,
  );
}

function checkLength(what: string, length: number, expected: number): void {
  if (length === expected) return;
  throw new Http2Error('FRAME_SIZE_ERROR', `The peer sent ${what} of ${length} bytes instead of ${expected}`);
}

export type Address = { readonly path: string } | { readonly host: string; readonly port: number };

/** The size of the buffer for one socket read. */
const readBytes = 64 << 10;

/**
 * Connects without TLS and with prior knowledge of HTTP/2. All data is read into one buffer,
 * because allocating one for each read costs more than reading.
 */
export function dialHttp2(address: Address, listener: ConnectionListener): ClientConnection {
  const buffer = Buffer.allocUnsafeSlow(readBytes);
  const socket: Socket = connect({
    ...address,
    noDelay: true,
    onread: {
      buffer,
      callback(bytes) {
        connection.receive(buffer.subarray(0, bytes));
        return true;
      },
    },
  });
  const connection = new ClientConnection(socket, listener);
  return connection;
}
