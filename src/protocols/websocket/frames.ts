import { KubelingError } from '../../lib/index.ts';

/** Decodes and encodes the frames of RFC 6455 on the server side. */

const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
const maxControlBytes = 125;

export const closeCodes = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  tooLate: 1008,
  failed: 1011,
} as const;

/**
 * A decoded WebSocket frame or part of one. A message is delivered in pieces as it arrives,
 * independent of its frames; an empty message is one empty piece.
 */
export type WebSocketPiece =
  | {
      readonly kind: 'message';
      readonly type: 'text' | 'binary';
      /** Whether this piece is the first one of a message. */
      readonly first: boolean;
      readonly last: boolean;
      readonly bytes: Buffer;
    }
  | { readonly kind: 'ping' | 'pong' | 'close'; readonly bytes: Buffer };

export function webSocketFrame(
  type: 'binary' | 'text' | 'ping' | 'pong' | 'close',
  ...parts: readonly Uint8Array[]
): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([frameHead(opcodes[type], length), ...parts]);
}

export function closeFrame(code: number): Buffer {
  const body = Buffer.alloc(2);
  body.writeUInt16BE(code);
  return webSocketFrame('close', body);
}

/** Encodes a complete message without mask: only clients mask. */
function frameHead(opcode: number, length: number): Buffer {
  const first = 0x80 | opcode;
  if (length < 126) return Buffer.from([first, length]);
  if (length <= 0xffff) return Buffer.from([first, 126, length >>> 8, length & 0xff]);
  const head = Buffer.alloc(10);
  head[0] = first;
  head[1] = 127;
  head.writeBigUInt64BE(BigInt(length), 2);
  return head;
}

interface OpenFrame {
  readonly opcode: number;
  readonly fin: boolean;
  readonly mask: Buffer;
  read: number;
  left: number;
}

/** Decodes chunks of any size; buffers at most one frame header or one control frame. */
export class WebSocketReader {
  #held: Buffer = Buffer.alloc(0);
  #frame: OpenFrame | undefined;
  /** The type of the message that is being received. */
  #message: { readonly type: 'text' | 'binary'; begun: boolean } | undefined;

  /** Decodes a chunk. Throws WEBSOCKET_MALFORMED, after which no more can be read. */
  *push(chunk: Uint8Array): Generator<WebSocketPiece> {
    const more = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    this.#held = this.#held.length === 0 ? more : Buffer.concat([this.#held, more]);
    for (;;) {
      this.#frame ??= this.#readHead();
      if (this.#frame === undefined) return;
      const piece = this.#frame.opcode >= 8 ? this.#readControl(this.#frame) : this.#readMessage(this.#frame);
      if (piece === undefined) return;
      yield piece;
    }
  }

  #readHead(): OpenFrame | undefined {
    const held = this.#held;
    if (held.length < 2) return undefined;
    const [first = 0, second = 0] = held;
    const opcode = first & 0x0f;
    const fin = (first & 0x80) !== 0;
    const short = second & 0x7f;
    this.#check(first, second, opcode, short);
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    const headBytes = 2 + lengthBytes + 4;
    if (held.length < headBytes) return undefined;
    const length = lengthBytes === 0 ? short : readLength(held.subarray(2, 2 + lengthBytes));
    const mask = Buffer.from(held.subarray(headBytes - 4, headBytes));
    this.#held = held.subarray(headBytes);
    if (opcode === opcodes.text || opcode === opcodes.binary) {
      this.#message = { type: opcode === opcodes.text ? 'text' : 'binary', begun: false };
    }
    return { opcode, fin, mask, read: 0, left: length };
  }

  #check(first: number, second: number, opcode: number, short: number): void {
    if ((first & 0x70) !== 0) throw malformed('reserved bits are set, but no extension was negotiated');
    if ((second & 0x80) === 0) throw malformed('a frame of the client is not masked');
    if (!Object.values<number>(opcodes).includes(opcode)) throw malformed(`there is no opcode ${opcode}`);
    if (opcode >= 8 && ((first & 0x80) === 0 || short > maxControlBytes)) {
      throw malformed('a control frame is fragmented or longer than 125 bytes');
    }
    if (opcode === opcodes.continuation && this.#message === undefined) {
      throw malformed('a continuation frame has no message that it continues');
    }
    if ((opcode === opcodes.text || opcode === opcodes.binary) && this.#message !== undefined) {
      throw malformed('a new message begins before the previous one has ended');
    }
  }

  #readMessage(open: OpenFrame): WebSocketPiece | undefined {
    const message = this.#message;
    if (message === undefined) throw malformed('there is no message');
    if (open.left > 0 && this.#held.length === 0) return undefined;
    const bytes = this.#takeUnmasked(open, Math.min(open.left, this.#held.length));
    const isFrameOver = open.left === 0;
    const last = isFrameOver && open.fin;
    const first = !message.begun;
    message.begun = true;
    if (isFrameOver) this.#frame = undefined;
    if (last) this.#message = undefined;
    return { kind: 'message', type: message.type, first, last, bytes };
  }

  #readControl(open: OpenFrame): WebSocketPiece | undefined {
    if (this.#held.length < open.left) return undefined;
    const bytes = this.#takeUnmasked(open, open.left);
    this.#frame = undefined;
    const kind = open.opcode === opcodes.close ? 'close' : open.opcode === opcodes.ping ? 'ping' : 'pong';
    return { kind, bytes };
  }

  #takeUnmasked(open: OpenFrame, length: number): Buffer {
    const bytes = Buffer.from(this.#held.subarray(0, length));
    this.#held = this.#held.subarray(length);
    for (let at = 0; at < length; at++) bytes[at] = (bytes[at] ?? 0) ^ (open.mask[(open.read + at) & 3] ?? 0);
    open.read += length;
    open.left -= length;
    return bytes;
  }
}

function readLength(bytes: Buffer): number {
  const length = bytes.length === 2 ? bytes.readUInt16BE() : Number(bytes.readBigUInt64BE());
  if (!Number.isSafeInteger(length)) throw malformed('the length of a frame is too large');
  return length;
}

function malformed(why: string): KubelingError {
  return new KubelingError('WEBSOCKET_MALFORMED', `Cannot read the WebSocket of a client: ${why}`);
}
