export { type MessageInit, type MessageType, Schema } from './schema.ts';
