/**
 * What is the client's business with us alone, and what is written anew. A body would be the beginning of the other
 * protocol to one reader and none of it to the next, so nothing that announces one is passed on.
 */
const keptBack = new Set([
  'authorization',
  'host',
  'content-length',
  'transfer-encoding',
  'cookie',
  'x-remote-user',
  'x-remote-group',
]);

/** A token that browsers send in the only header they can set. */
const bearerProtocol = 'base64url.bearer.authorization.k8s.io.';

/** The client's headers as they go on to who serves it: without what shows who the client is. */
export function passedHeaders(rawHeaders: readonly string[]): readonly string[] {
  return pairs(rawHeaders).flatMap(([name, value]) => {
    const lower = name.toLowerCase();
    if (keptBack.has(lower) || lower.startsWith('impersonate-')) return [];
    if (lower !== 'sec-websocket-protocol') return [name, value];
    const plain = protocolsOf(value).filter((each) => !each.startsWith(bearerProtocol));
    return plain.length === 0 ? [] : [name, plain.join(', ')];
  });
}

/** The protocols a client offers to speak inside a WebSocket, best first. */
export function protocolsOf(value: string | undefined): readonly string[] {
  return (value ?? '')
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '');
}

/** The head of an answer that grants an upgrade. */
export function switchingHead(rawHeaders: readonly string[]): string {
  const lines = pairs(rawHeaders).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`;
}

export function pairs(flat: readonly string[]): readonly (readonly [string, string])[] {
  return flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] ?? ''] as const] : []));
}
