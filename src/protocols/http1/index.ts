/** Shared by all HTTP/1.1 servers: request targets, and limits of connections and requests. */
export {
  ConnectionGuard,
  guardedServerOptions,
  maxHeaderBytes,
  type OnEnd,
} from './connection-guard.ts';
export type { ConnectionClass, ConnectionQuota } from './connection-limiter.ts';
export { maxAnonymousTarget, parseQuery, type RequestTarget, splitTarget } from './request-target.ts';
