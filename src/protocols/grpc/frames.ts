import { GrpcError } from './status.ts';

const headerBytes = 5;

/** Encodes a message with its five-byte prefix; never compressed. */
export function grpcFrame(message: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(headerBytes + message.length);
  framed[0] = 0;
  framed.writeUInt32BE(message.length, 1);
  framed.set(message, headerBytes);
  return framed;
}

/**
 * Decodes a byte stream into gRPC messages, and rejects those over the limit before they are
 * buffered.
 */
export class GrpcMessageReader {
  readonly #limit: number;
  #chunks: Buffer[] = [];
  #buffered = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Adds received bytes; returns the messages that are now complete. */
  push(chunk: Buffer): readonly Buffer[] {
    this.#chunks.push(chunk);
    this.#buffered += chunk.length;
    const messages: Buffer[] = [];
    for (let length = this.#nextLength(); length !== undefined; length = this.#nextLength()) {
      if (this.#buffered < headerBytes + length) break;
      messages.push(this.#take(length));
    }
    return messages;
  }

  /** Whether the last message is incomplete. */
  get hasPartialMessage(): boolean {
    return this.#buffered > 0;
  }

  #nextLength(): number | undefined {
    if (this.#buffered < headerBytes) return undefined;
    const [first] = this.#chunks;
    const head = first !== undefined && first.length >= headerBytes ? first : this.#join();
    if (head[0] !== 0)
      throw new GrpcError('INTERNAL', 'The peer sent a compressed message, but compression is not supported');
    const length = head.readUInt32BE(1);
    if (length > this.#limit) {
      throw new GrpcError(
        'RESOURCE_EXHAUSTED',
        `The message is larger than the limit: ${length} bytes, limit ${this.#limit}`,
      );
    }
    return length;
  }

  #take(length: number): Buffer {
    const all = this.#join();
    const end = headerBytes + length;
    this.#chunks = all.length > end ? [all.subarray(end)] : [];
    this.#buffered -= end;
    return all.subarray(headerBytes, end);
  }

  #join(): Buffer {
    const [first] = this.#chunks;
    if (first !== undefined && this.#chunks.length === 1) return first;
    const joined = Buffer.concat(this.#chunks);
    this.#chunks = [joined];
    return joined;
  }
}
