export const frameHeadBytes = 9;
export const defaultWindowBytes = 65_535;
export const maxWindowBytes = 0x7fff_ffff;
/** The default maximum of a frame's payload; this client sends no setting that allows more. */
export const defaultFrameBytes = 16_384;
export const maxFrameBytes = 0xff_ffff;

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

/** The connection preface of a client. */
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** Writes the header of a frame; returns the offset of its payload. */
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

export function rstStreamFrame(streamId: number, reason: Http2Reason): Buffer {
  return numbersFrame(frameType.reset, streamId, numberOfReason(reason));
}

/** Encodes a GOAWAY frame. Its last processed stream is 0, because servers open no streams. */
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

/** The error codes of HTTP/2, by number. */
const http2Reasons = [
  'NO_ERROR',
  'PROTOCOL_ERROR',
  'INTERNAL_ERROR',
  'FLOW_CONTROL_ERROR',
  'SETTINGS_TIMEOUT',
  'STREAM_CLOSED',
  'FRAME_SIZE_ERROR',
  'REFUSED_STREAM',
  'CANCEL',
  'COMPRESSION_ERROR',
  'CONNECT_ERROR',
  'ENHANCE_YOUR_CALM',
  'INADEQUATE_SECURITY',
  'HTTP_1_1_REQUIRED',
] as const;

export type Http2Reason = (typeof http2Reasons)[number];

/** A protocol violation of the peer, or a limit that it exceeded. */
export class Http2Error extends Error {
  readonly reason: Http2Reason;

  constructor(reason: Http2Reason, message: string) {
    super(message);
    this.name = 'Http2Error';
    this.reason = reason;
  }
}

/**
 * The name of an error code; an unknown code counts as INTERNAL_ERROR, as the protocol requires.
 */
export function reasonOf(number: number): Http2Reason {
  return http2Reasons[number] ?? 'INTERNAL_ERROR';
}

function numberOfReason(reason: Http2Reason): number {
  return http2Reasons.indexOf(reason);
}

export const settingId = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

/**
 * The peer's settings that this client uses. The peer's maximum frame size is not one of them,
 * because this client never sends frames above the default size.
 */
export interface PeerSettings {
  readonly maxConcurrentStreams: number;
  readonly initialWindowSize: number;
  readonly maxHeaderListSize: number;
}

export const defaultPeerSettings: PeerSettings = {
  maxConcurrentStreams: Number.POSITIVE_INFINITY,
  initialWindowSize: defaultWindowBytes,
  maxHeaderListSize: Number.POSITIVE_INFINITY,
};

/**
 * Applies the payload of a SETTINGS frame; unknown settings are ignored. Throws an Http2Error for
 * invalid ones.
 */
export function readSettings(before: PeerSettings, bytes: Buffer, start: number, end: number): PeerSettings {
  if ((end - start) % 6 !== 0) {
    throw new Http2Error(
      'FRAME_SIZE_ERROR',
      `The peer sent a SETTINGS frame of ${end - start} bytes, which is not a multiple of 6`,
    );
  }
  const settings = { ...before };
  for (let at = start; at < end; at += 6) {
    const value = bytes.readUInt32BE(at + 2);
    switch (bytes.readUInt16BE(at)) {
      case settingId.enablePush:
        if (value !== 0) throw invalidSetting('PROTOCOL_ERROR', 'ENABLE_PUSH', value);
        break;
      case settingId.maxConcurrentStreams:
        settings.maxConcurrentStreams = value;
        break;
      case settingId.initialWindowSize:
        if (value > maxWindowBytes) throw invalidSetting('FLOW_CONTROL_ERROR', 'INITIAL_WINDOW_SIZE', value);
        settings.initialWindowSize = value;
        break;
      case settingId.maxFrameSize:
        if (value < defaultFrameBytes || value > maxFrameBytes) {
          throw invalidSetting('PROTOCOL_ERROR', 'MAX_FRAME_SIZE', value);
        }
        break;
      case settingId.maxHeaderListSize:
        settings.maxHeaderListSize = value;
        break;
    }
  }
  return settings;
}

function invalidSetting(
  reason: 'PROTOCOL_ERROR' | 'FLOW_CONTROL_ERROR',
  name: string,
  value: number,
): Http2Error {
  return new Http2Error(reason, `The peer set ${name} to the invalid value ${value}`);
}
