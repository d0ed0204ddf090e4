import type { Duplex } from 'node:stream';
import { writeAll } from '../../lib/index.ts';
import { closeCodes, closeFrame, frame, type WebSocketPiece, WebSocketReader } from './frames.ts';

export type MessagePiece = Extract<WebSocketPiece, { kind: 'message' }>;

/** The server's end of a WebSocket whose handshake is done. The socket stays its owner's to destroy. */
export class WebSocketConnection {
  readonly #socket: Duplex;
  readonly #head: Uint8Array;
  readonly #reader = new WebSocketReader();
  #closing = false;

  /** `head`: what the client sent right behind its request. */
  constructor(socket: Duplex, head: Uint8Array) {
    this.#socket = socket;
    this.#head = head;
  }

  /** Resolves when the client can take more; rejects when it is gone. */
  async send(signal: AbortSignal, ...parts: readonly Uint8Array[]): Promise<void> {
    await writeAll(this.#socket, frame('binary', ...parts), signal);
  }

  /** The same, for a client that reads text. */
  async sendText(signal: AbortSignal, text: Uint8Array): Promise<void> {
    await writeAll(this.#socket, frame('text', text), signal);
  }

  /** Not to a client that has not taken what was said before: it would pile up, and what is under way is enough to find out that the client is gone. */
  ping(): void {
    if (this.#closing || !this.#socket.writable || this.#socket.writableNeedDrain) return;
    this.#socket.write(frame('ping'));
  }

  /** The last thing we say. */
  close(code: number = closeCodes.normal): void {
    if (this.#closing || !this.#socket.writable) return;
    this.#closing = true;
    this.#socket.end(closeFrame(code));
  }

  /**
   * What the client says, until it closes or its connection ends. Read slowly, and the client is held back. To be
   * called once. What breaks the rules closes the connection and is thrown.
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

  /** A client that pings and does not read is not answered: the answers would pile up. */
  #answerPing(bytes: Buffer): void {
    if (this.#socket.writable && !this.#socket.writableNeedDrain) this.#socket.write(frame('pong', bytes));
  }
}
