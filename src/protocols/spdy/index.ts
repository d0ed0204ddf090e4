export { SpdyConnection } from './connection.ts';
export { dataHead, HeaderEncoder, type SpdyFrame, SpdyFrameReader, type StreamHeaders } from './frames.ts';
export type { SpdyStream } from './stream.ts';
