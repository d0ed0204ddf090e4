/** What the servers of HTTP/1.1 share: request targets, and limits for connections and requests. */
export {
  ConnectionGuard,
  guardedServerOptions,
  maxHeaderBytes,
  type OnEnd,
} from './connection-guard.ts';
export type { ConnectionClass, ConnectionQuota } from './connection-limiter.ts';
export { maxAnonymousTarget, parseQuery, type RequestTarget, splitTarget } from './request-target.ts';
