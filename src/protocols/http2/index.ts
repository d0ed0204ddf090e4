export { type Address, ClientConnection, type ConnectionListener, dialHttp2 } from './client-connection.ts';
export type { ClientStream, StreamEnd, StreamReader } from './client-stream.ts';
export { Http2Error } from './frames.ts';
export type { Headers } from './hpack-decoder.ts';
export { encodeHeaders, type HeaderBlock, joinBlocks } from './hpack-encoder.ts';
export type { HeaderField } from './hpack-tables.ts';
