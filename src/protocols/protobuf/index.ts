export { type MessageInit, type MessageType, Schema } from './schema.ts';
export { WireReader, wireType } from './wire.ts';
