export { type DbusCall, DbusConnection, type DbusOptions } from './connection.ts';
export { type DbusMessage, encodeMessage, MessageReader } from './message.ts';
export type { DbusValue, DbusVariant } from './values.ts';
