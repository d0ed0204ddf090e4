export { SpdyConnection } from './connection.ts';
export { dataHead, FrameReader, HeaderEncoder, type SpdyPiece, type StreamHeaders } from './frames.ts';
export type { SpdyStream } from './stream.ts';
