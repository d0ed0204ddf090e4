import type { IncomingMessage } from 'node:http';
import { KubelingError, onAbort } from '../lib/index.ts';

/** What a client sends along, as text. Rejects when it is longer, breaks off, or the signal is aborted first. */
export async function readBody(
  incoming: IncomingMessage,
  maxBytes: number,
  signal: AbortSignal,
): Promise<string> {
  using _link = onAbort(signal, (reason) => incoming.destroy(reason as Error));
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) {
      incoming.resume();
      throw new KubelingError(
        'REQUEST_BODY',
        `Cannot read a request's body as it must be at most ${maxBytes} bytes`,
      );
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
