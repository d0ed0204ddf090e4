import { type DbusValue, type DbusVariant, malformed, ValueReader, ValueWriter } from './values.ts';

/** The types of D-Bus messages that are supported: calls, replies and signals. */
export interface DbusMessage {
  readonly type: 'call' | 'return' | 'error' | 'signal';
  readonly serial: number;
  readonly path?: string | undefined;
  readonly interface?: string | undefined;
  readonly member?: string | undefined;
  readonly errorName?: string | undefined;
  readonly replySerial?: number | undefined;
  readonly destination?: string | undefined;
  readonly sender?: string | undefined;
  /** The D-Bus signature of the message body. */
  readonly signature?: string | undefined;
  /** The number of file descriptors that are sent with the message. */
  readonly descriptors?: number | undefined;
  readonly body?: readonly DbusValue[] | undefined;
}

const types = ['call', 'return', 'error', 'signal'] as const;

/** The header fields of a D-Bus message by number, each with its type. */
const fields = [
  [1, 'path', 'o'],
  [2, 'interface', 's'],
  [3, 'member', 's'],
  [4, 'errorName', 's'],
  [5, 'replySerial', 'u'],
  [6, 'destination', 's'],
  [7, 'sender', 's'],
  [8, 'signature', 'g'],
  [9, 'descriptors', 'u'],
] as const;

const fixedBytes = 16;
/** The maximum size of a message; larger ones are skipped. */
const maxBytes = 1_048_576;

export function encodeMessage(message: DbusMessage): Buffer {
  const { signature = '', body = [] } = message;
  const bodyBytes = new ValueWriter().write(signature, body).bytes();
  const head = fields.flatMap(([code, name, type]) => {
    const value = message[name];
    return value === undefined ? [] : [[code, { signature: type, value }] as const];
  });
  const type = types.indexOf(message.type) + 1;
  const start = ['l'.charCodeAt(0), type, 0, 1, bodyBytes.length, message.serial, head];
  const headBytes = new ValueWriter().write('yyyyuua(yv)', start).align(8).bytes();
  return Buffer.concat([headBytes, bodyBytes]);
}

/**
 * Decodes a stream of D-Bus messages. Any user of the machine may send messages to a connection of
 * the system bus, so bodies are decoded only for accepted headers, and messages of more than 1 MiB
 * are skipped without being buffered. Throws for malformed input: the stream cannot be read after
 * it.
 */
export class DbusMessageReader {
  readonly #accepts: (header: DbusMessage) => boolean;
  #pending: Buffer = Buffer.alloc(0);
  /** The number of bytes of an oversized message that have not arrived yet. */
  #skipBytes = 0;

  constructor(accepts: (header: DbusMessage) => boolean = () => true) {
    this.#accepts = accepts;
  }

  push(bytes: Buffer): readonly DbusMessage[] {
    this.#pending = Buffer.concat([this.#pending, this.#unskipped(bytes)]);
    const messages: DbusMessage[] = [];
    for (;;) {
      const size = messageSize(this.#pending);
      if (size !== undefined && size > maxBytes) {
        this.#skipBytes = size;
        this.#pending = this.#unskipped(this.#pending);
        continue;
      }
      if (size === undefined || this.#pending.length < size) return messages;
      const message = decodeMessage(this.#pending.subarray(0, size), this.#accepts);
      if (message !== undefined) messages.push(message);
      this.#pending = this.#pending.subarray(size);
    }
  }

  #unskipped(bytes: Buffer): Buffer {
    const skipped = Math.min(this.#skipBytes, bytes.length);
    this.#skipBytes -= skipped;
    return bytes.subarray(skipped);
  }
}

/** The length of the next message; undefined until the fixed part of the header has arrived. */
function messageSize(bytes: Buffer): number | undefined {
  if (bytes.length < fixedBytes) return undefined;
  const [bodyLength, , fieldsLength] = numbersAt(bytes, 4);
  return Math.ceil((fixedBytes + fieldsLength) / 8) * 8 + bodyLength;
}

function numbersAt(bytes: Buffer, at: number): readonly [number, number, number] {
  const read = (offset: number) =>
    endianOf(bytes) === 'little' ? bytes.readUInt32LE(offset) : bytes.readUInt32BE(offset);
  return [read(at), read(at + 4), read(at + 8)];
}

function endianOf(bytes: Buffer): 'little' | 'big' {
  const mark = String.fromCharCode(bytes[0] ?? 0);
  if (mark === 'l') return 'little';
  if (mark === 'B') return 'big';
  throw malformed('its first byte is no endianness mark');
}

/**
 * Decodes the header of a message. Returns undefined for unknown message types, which the
 * specification says to ignore, and for headers that are not accepted.
 */
function decodeMessage(bytes: Buffer, accepts: (header: DbusMessage) => boolean): DbusMessage | undefined {
  const reader = new ValueReader(bytes, endianOf(bytes));
  const [, typeNumber, , , , serial, head] = reader.read('yyyyuua(yv)');
  const type = types[Number(typeNumber) - 1];
  if (type === undefined) return undefined;
  reader.align(8);
  const said = new Map(
    (head as readonly (readonly [number, DbusVariant])[]).map(([code, { value }]) => [code, value]),
  );
  const named = fields.map(([code, name]) => [name, said.get(code)] as const);
  const known = Object.fromEntries(named.filter(([, value]) => value !== undefined)) as Partial<DbusMessage>;
  const header = { ...known, type, serial: Number(serial) };
  if (!accepts(header)) return undefined;
  return { ...header, body: known.signature === undefined ? [] : reader.read(known.signature) };
}
