export { type DbusCall, DbusConnection, type DbusOptions } from './connection.ts';
export { type DbusMessage, DbusMessageReader, encodeMessage } from './message.ts';
export type { DbusValue, DbusVariant } from './values.ts';
