import { type DbusValue, type DbusVariant, malformed, ValueReader, ValueWriter } from './values.ts';

/** Calls, answers and news; the rest of the protocol is of no use here. */
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
  /** Of the body. */
  readonly signature?: string | undefined;
  /** How many descriptors come beside it. */
  readonly descriptors?: number | undefined;
  readonly body?: readonly DbusValue[] | undefined;
}

const types = ['call', 'return', 'error', 'signal'] as const;

/** The fields of a message's head by their number, each with its type. */
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
/** Far more than anybody has to say to us. */
const mostBytes = 1_048_576;

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

/** Takes bytes as they come and answers the messages they complete. Throws for what is none: nothing after it counts. */
export class MessageReader {
  #pending = Buffer.alloc(0);

  take(bytes: Buffer): readonly DbusMessage[] {
    this.#pending = Buffer.concat([this.#pending, bytes]);
    const messages: DbusMessage[] = [];
    for (;;) {
      const size = messageSize(this.#pending);
      if (size === undefined || this.#pending.length < size) return messages;
      const message = decodeMessage(this.#pending.subarray(0, size));
      if (message !== undefined) messages.push(message);
      this.#pending = this.#pending.subarray(size);
    }
  }
}

/** Undefined while too little of it is there to tell. */
function messageSize(bytes: Buffer): number | undefined {
  if (bytes.length < fixedBytes) return undefined;
  const [bodyLength, , fieldsLength] = numbersAt(bytes, 4);
  const size = Math.ceil((fixedBytes + fieldsLength) / 8) * 8 + bodyLength;
  if (size > mostBytes) throw malformed(`it has ${size} bytes`);
  return size;
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
  throw malformed('it begins with something else');
}

/** Undefined for a kind of message that is not known, which is to be left alone. */
function decodeMessage(bytes: Buffer): DbusMessage | undefined {
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
  const body = known.signature === undefined ? [] : reader.read(known.signature);
  return { ...known, type, serial: Number(serial), body };
}
