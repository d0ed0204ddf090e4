/** The reasons HTTP/2 knows for ending a stream or a connection, by their numbers on the wire. */
export const http2Reasons = [
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

/** Something the other side must not do, or a limit it went past. */
export class Http2Error extends Error {
  readonly reason: Http2Reason;

  constructor(reason: Http2Reason, message: string) {
    super(message);
    this.name = 'Http2Error';
    this.reason = reason;
  }
}

/** A number nobody knows counts as an internal error of the sender, as the protocol asks. */
export function reasonOf(number: number): Http2Reason {
  return http2Reasons[number] ?? 'INTERNAL_ERROR';
}

export function numberOfReason(reason: Http2Reason): number {
  return http2Reasons.indexOf(reason);
}
