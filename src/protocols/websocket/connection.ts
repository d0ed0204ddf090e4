import type { Duplex } from 'node:stream';
import { writeAll } from '../../lib/index.ts';
import { closeCodes, closeFrame, type WebSocketPiece, WebSocketReader, webSocketFrame } from './frames.ts';

export type MessagePiece = Extract<WebSocketPiece, { kind: 'message' }>;

/** The server side of a WebSocket after the handshake. The caller owns the socket. */
export class WebSocketConnection {
  readonly #socket: Duplex;
  readonly #head: Uint8Array;
  readonly #reader = new WebSocketReader();
  #closing = false;

  /** `head` contains bytes that the client sent directly after its request. */
  constructor(socket: Duplex, head: Uint8Array) {
    this.#socket = socket;
    this.#head = head;
  }

  /**
   * Sends a binary message. Resolves when the client accepts more; rejects when it has
   * disconnected.
   */
  async send(signal: AbortSignal, ...parts: readonly Uint8Array[]): Promise<void> {
    await writeAll(this.#socket, webSocketFrame('binary', ...parts), signal);
  }

  /** Sends a text message, otherwise like `send`. */
  async sendText(signal: AbortSignal, text: Uint8Array): Promise<void> {
    await writeAll(this.#socket, webSocketFrame('text', text), signal);
  }

  /**
   * Sends a ping unless earlier data is unread: pings would accumulate, and data in flight suffices
   * to detect a lost client.
   */
  ping(): void {
    if (this.#closing || !this.#socket.writable || this.#socket.writableNeedDrain) return;
    this.#socket.write(webSocketFrame('ping'));
  }

  /** Sends the close frame; no frame is sent after it. */
  close(code: number = closeCodes.normal): void {
    if (this.#closing || !this.#socket.writable) return;
    this.#closing = true;
    this.#socket.end(closeFrame(code));
  }

  /**
   * The received messages until the client closes or its connection ends. The client can send only
   * as fast as the caller reads. Must be called once. A protocol violation closes the connection
   * and is thrown.
   */
  async *messages(): AsyncGenerator<MessagePiece> {
    try {
      for await (const chunk of this.#chunks()) {
        for (const piece of this.#reader.push(chunk)) {
          if (piece.kind === 'close') return this.close();
          if (piece.kind === 'ping') this.#answerPing(piece.bytes);
          else if (piece.kind === 'message') yield piece;
        }
      }
    } catch (error) {
      this.close(closeCodes.protocolError);
      throw error;
    }
  }

  async *#chunks(): AsyncGenerator<Uint8Array> {
    if (this.#head.length > 0) yield this.#head;
    yield* this.#socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
  }

  /** A client that does not read gets no pongs, because they would accumulate. */
  #answerPing(bytes: Buffer): void {
    if (this.#socket.writable && !this.#socket.writableNeedDrain)
      this.#socket.write(webSocketFrame('pong', bytes));
  }
}
