import { offeredProtocols } from '../websocket/index.ts';

/**
 * Request headers that are not forwarded: the client's credentials, the identity headers that a
 * backend accepts from a trusted front proxy, and headers that the proxy sets itself. One parser
 * would treat a body as part of the upgraded protocol and another as part of the request, so no
 * header that announces a body is forwarded.
 */
const droppedHeaders = new Set(['authorization', 'cookie', 'host', 'content-length', 'transfer-encoding']);
const droppedPrefixes = ['impersonate-', 'x-remote-'];

/** The prefix of the WebSocket subprotocol that carries the bearer token of a browser, which can set no other header. */
export const bearerProtocolPrefix = 'base64url.bearer.authorization.k8s.io.';

/** The client's headers that are forwarded to the backend: without the client's credentials. */
export function forwardedHeaders(rawHeaders: readonly string[]): readonly string[] {
  return headerPairs(rawHeaders).flatMap(([name, value]) => {
    const lower = name.toLowerCase();
    if (droppedHeaders.has(lower) || droppedPrefixes.some((prefix) => lower.startsWith(prefix))) return [];
    if (lower !== 'sec-websocket-protocol') return [name, value];
    const protocols = offeredProtocols({ [lower]: value }).filter(
      (each) => !each.startsWith(bearerProtocolPrefix),
    );
    return protocols.length === 0 ? [] : [name, protocols.join(', ')];
  });
}

/** The head of a response that grants an upgrade. */
export function switchingProtocolsHead(rawHeaders: readonly string[]): string {
  const lines = headerPairs(rawHeaders).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`;
}

/** Converts raw headers, which alternate names and values, to pairs. */
export function headerPairs(flat: readonly string[]): readonly (readonly [string, string])[] {
  return flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] ?? ''] as const] : []));
}
