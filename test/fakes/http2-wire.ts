import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import {
  ClientConnection,
  defaultLimits,
  type Http2Limits,
} from '../../src/protocols/http2/client-connection.ts';
import type { StreamEnd, StreamReader } from '../../src/protocols/http2/client-stream.ts';
import { Http2FrameReader } from '../../src/protocols/http2/frame-reader.ts';
import {
  frameFlag,
  frameOf,
  frameType,
  type Http2Reason,
  preface,
  reasonOf,
  settingsFrame,
} from '../../src/protocols/http2/frames.ts';
import type { HeaderField } from '../../src/protocols/http2/index.ts';
import { encodeHeaders } from '../../src/protocols/http2/index.ts';

export interface SentFrame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/**
 * The peer of a client's HTTP/2 socket: stores the data written to it, and can stop accepting it.
 */
export class Http2Wire extends Duplex {
  readonly frames: SentFrame[] = [];
  writes = 0;
  #greeting: Buffer | undefined = Buffer.alloc(0);
  #stalled: (() => void) | undefined;
  #isStalled = false;
  readonly #reader = new Http2FrameReader((type, flags, streamId, bytes, start, end) => {
    this.frames.push({ type, flags, streamId, payload: Buffer.from(bytes.subarray(start, end)) });
  });

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.writes++;
    this.#take(chunk);
    if (this.#isStalled) this.#stalled = done;
    else done();
  }

  /** Stops accepting data from the next write on. */
  stall(): void {
    this.#isStalled = true;
  }

  flow(): void {
    this.#isStalled = false;
    this.#stalled?.();
  }

  #take(chunk: Buffer): void {
    if (this.#greeting === undefined) {
      this.#reader.push(chunk);
      return;
    }
    const all = Buffer.concat([this.#greeting, chunk]);
    this.#greeting = all;
    if (all.length < preface.length) return;
    assert.deepEqual(all.subarray(0, preface.length), preface);
    this.#greeting = undefined;
    this.#reader.push(all.subarray(preface.length));
  }
}

/** Records the parts of a response until it is complete. */
export class Answer implements StreamReader {
  readonly heads: (readonly HeaderField[])[] = [];
  readonly ends: StreamEnd[] = [];
  body = '';

  headers(headers: ReadonlyMap<string, string>): void {
    this.heads.push([...headers]);
  }

  data(bytes: Buffer): void {
    this.body += bytes.toString('latin1');
  }

  ended(end: StreamEnd): void {
    this.ends.push(end);
  }
}

/** An HTTP/2 connection and its fake peer; the test controls what the peer sends. */
export class Http2Desk {
  readonly wire = new Http2Wire();
  readonly heard: string[] = [];
  readonly errors: (Error | undefined)[] = [];
  readonly connection: ClientConnection;

  constructor(limits: Partial<Http2Limits> = {}) {
    const listener = {
      ready: () => this.heard.push('ready'),
      draining: () => this.heard.push('leaving'),
      ended: (error: Error | undefined) => {
        this.heard.push('ended');
        this.errors.push(error);
      },
    };
    this.connection = new ClientConnection(this.wire, listener, { ...defaultLimits, ...limits });
  }

  says(...frames: readonly Buffer[]): void {
    for (const frame of frames) this.connection.receive(Buffer.from(frame));
  }

  /** Sends the settings of the peer, by their numbers. */
  settings(settings: Readonly<Record<number, number>> = {}): void {
    this.says(settingsFrame(Object.entries(settings).map(([id, value]) => [Number(id), value])));
  }

  ask(body: Uint8Array | string = 'x', fields: readonly HeaderField[] = [[':path', '/a']]) {
    const response = new Answer();
    const stream = this.connection.open({ head: encodeHeaders(fields), body: Buffer.from(body) }, response);
    return { answer: response, stream };
  }

  /** Waits until pending writes are done. Returns the frames sent since the last call. */
  async sent(): Promise<readonly SentFrame[]> {
    await new Promise(setImmediate);
    return this.wire.frames.splice(0);
  }

  /** Returns the reason of the last GOAWAY or RST_STREAM frame that was sent. */
  async lastReason(type: 'goAway' | 'reset'): Promise<Http2Reason | undefined> {
    const frame = (await this.sent()).findLast((each) => each.type === frameType[type]);
    return frame && reasonOf(frame.payload.readUInt32BE(type === 'goAway' ? 4 : 0));
  }
}

export function headersFrame(streamId: number, fields: readonly HeaderField[], end: 'end' | 'more'): Buffer {
  const flags = frameFlag.endHeaders | (end === 'end' ? frameFlag.endStream : 0);
  return frameOf(frameType.headers, flags, streamId, encodeHeaders(fields).bytes);
}

export function dataFrame(streamId: number, body: string, end: 'end' | 'more'): Buffer {
  return frameOf(frameType.data, end === 'end' ? frameFlag.endStream : 0, streamId, Buffer.from(body));
}

export const ok: readonly HeaderField[] = [[':status', '200']];
export const trailers: readonly HeaderField[] = [['grpc-status', '0']];
