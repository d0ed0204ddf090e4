/**
 * The frames of HTTP/2, as they are written.
 *
 *   length:24 type:8 flags:8 0:1 stream:31  payload
 */
import { type Http2Reason, numberOfReason } from './errors.ts';

export const frameHeadBytes = 9;
/** The largest payload either side may send without having been allowed more; we allow no more. */
export const defaultFrameBytes = 16_384;
export const largestFrameBytes = 0xff_ffff;

export const frameType = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const frameFlag = { ack: 1, endStream: 1, endHeaders: 4, padded: 8, priority: 0x20 } as const;

/** What a client says first. */
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** Answers where the payload begins. */
export function writeFrameHead(
  into: Buffer,
  at: number,
  length: number,
  type: number,
  flags: number,
  streamId: number,
): number {
  into[at] = length >>> 16;
  into[at + 1] = length >>> 8;
  into[at + 2] = length;
  into[at + 3] = type;
  into[at + 4] = flags;
  into[at + 5] = streamId >>> 24;
  into[at + 6] = streamId >>> 16;
  into[at + 7] = streamId >>> 8;
  into[at + 8] = streamId;
  return at + frameHeadBytes;
}

export function frameOf(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(frameHeadBytes + payload.length);
  frame.set(payload, writeFrameHead(frame, 0, payload.length, type, flags, streamId));
  return frame;
}

export function settingsFrame(settings: readonly (readonly [number, number])[]): Buffer {
  const payload = Buffer.allocUnsafe(settings.length * 6);
  for (const [index, [id, value]] of settings.entries()) {
    payload.writeUInt16BE(id, index * 6);
    payload.writeUInt32BE(value, index * 6 + 2);
  }
  return frameOf(frameType.settings, 0, 0, payload);
}

export function settingsAckFrame(): Buffer {
  return frameOf(frameType.settings, frameFlag.ack, 0, Buffer.alloc(0));
}

export function pingAckFrame(opaque: Uint8Array): Buffer {
  return frameOf(frameType.ping, frameFlag.ack, 0, opaque);
}

export function windowUpdateFrame(streamId: number, increment: number): Buffer {
  return numbersFrame(frameType.windowUpdate, streamId, increment);
}

export function resetFrame(streamId: number, reason: Http2Reason): Buffer {
  return numbersFrame(frameType.reset, streamId, numberOfReason(reason));
}

/** The last stream of the other side that was worked on is always none: it opens none. */
export function goAwayFrame(reason: Http2Reason): Buffer {
  return numbersFrame(frameType.goAway, 0, 0, numberOfReason(reason));
}

function numbersFrame(type: number, streamId: number, ...numbers: readonly number[]): Buffer {
  const length = numbers.length * 4;
  const frame = Buffer.allocUnsafe(frameHeadBytes + length);
  let at = writeFrameHead(frame, 0, length, type, 0, streamId);
  for (const number of numbers) at = frame.writeUInt32BE(number, at);
  return frame;
}
