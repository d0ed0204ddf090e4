import type { Writable } from 'node:stream';

/** Up to here it is cheaper to copy the pieces together than to hand them over one by one. */
const joinedBytes = 64 << 10;

/** Collects what is written in one turn of the event loop and hands it to the socket at once. */
export class Outbox {
  readonly #socket: Writable;
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** After all promises have run: whoever is answered often asks the next thing there. */
  readonly #flushSoon = () => process.nextTick(flush, this);

  constructor(socket: Writable) {
    this.#socket = socket;
  }

  /** What was written and has not left the process. */
  get waitingBytes(): number {
    return this.#bytes + this.#socket.writableLength;
  }

  write(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    if (this.#pieces.length === 1) queueMicrotask(this.#flushSoon);
  }

  /** Hands over now what else would go at the end of the turn. */
  flush(): void {
    const pieces = this.#pieces;
    const [first] = pieces;
    if (first === undefined) return;
    const bytes = this.#bytes;
    this.#pieces = [];
    this.#bytes = 0;
    if (!this.#socket.writable) return;
    if (pieces.length === 1) this.#socket.write(first);
    else if (bytes <= joinedBytes) this.#socket.write(Buffer.concat(pieces, bytes));
    else this.#writeAll(pieces);
  }

  #writeAll(pieces: readonly Buffer[]): void {
    this.#socket.cork();
    for (const piece of pieces) this.#socket.write(piece);
    this.#socket.uncork();
  }
}

function flush(outbox: Outbox): void {
  outbox.flush();
}
