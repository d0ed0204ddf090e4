export { ClientConnection, type ConnectionListener } from './client-connection.ts';
export type { ClientStream, StreamEnd, StreamReader } from './client-stream.ts';
export { type Address, dialHttp2 } from './dial.ts';
export type { HeaderField } from './dynamic-table.ts';
export { Http2Error } from './errors.ts';
export type { Headers } from './hpack-decoder.ts';
export { encodeHeaders, type HeaderBlock, joinBlocks } from './hpack-encoder.ts';
