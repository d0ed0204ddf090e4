export { SpdyConnection } from './connection.ts';
export { dataHead, FrameReader, type SpdyPiece } from './frames.ts';
export { HeaderEncoder, type StreamHeaders } from './header-block.ts';
export type { SpdyStream } from './stream.ts';
