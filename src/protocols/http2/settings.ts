import { Http2Error } from './errors.ts';
import { defaultFrameBytes, largestFrameBytes } from './frames.ts';
import { defaultWindowBytes, largestWindowBytes } from './send-window.ts';

export const settingId = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

/** What the other side asks of us, as far as it matters: our frames are never larger than anybody takes. */
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

/** The settings after a frame with these bytes; unknown ones are passed over. Throws an Http2Error. */
export function readSettings(before: PeerSettings, bytes: Buffer, start: number, end: number): PeerSettings {
  if ((end - start) % 6 !== 0) {
    throw new Http2Error('FRAME_SIZE_ERROR', `The other side sent settings of ${end - start} bytes`);
  }
  const settings = { ...before };
  for (let at = start; at < end; at += 6) {
    const value = bytes.readUInt32BE(at + 2);
    switch (bytes.readUInt16BE(at)) {
      case settingId.enablePush:
        if (value !== 0) throw refused('PROTOCOL_ERROR', 'ENABLE_PUSH', value);
        break;
      case settingId.maxConcurrentStreams:
        settings.maxConcurrentStreams = value;
        break;
      case settingId.initialWindowSize:
        if (value > largestWindowBytes) throw refused('FLOW_CONTROL_ERROR', 'INITIAL_WINDOW_SIZE', value);
        settings.initialWindowSize = value;
        break;
      case settingId.maxFrameSize:
        if (value < defaultFrameBytes || value > largestFrameBytes) {
          throw refused('PROTOCOL_ERROR', 'MAX_FRAME_SIZE', value);
        }
        break;
      case settingId.maxHeaderListSize:
        settings.maxHeaderListSize = value;
        break;
    }
  }
  return settings;
}

function refused(reason: 'PROTOCOL_ERROR' | 'FLOW_CONTROL_ERROR', name: string, value: number): Http2Error {
  return new Http2Error(reason, `The other side set ${name} to ${value}, which it must not`);
}
