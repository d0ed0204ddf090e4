/** What servers of HTTP/1.1 share: request targets. */
export { maxAnonymousTarget, parseQuery, type RequestTarget, splitTarget } from './request-target.ts';
