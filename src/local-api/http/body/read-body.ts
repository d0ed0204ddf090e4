import type { IncomingMessage } from 'node:http';
import { abortable, nextTurn } from '../../../lib/index.ts';
import { badRequest } from '../../api/status-errors.ts';
import { tooLarge } from '../http-errors.ts';

export const maxBodyBytes: number = 3 * 1024 * 1024;
/**
 * The number of bytes beyond the limit that are read and discarded: a client that is still sending
 * when the connection closes would not receive the response.
 */
const maxDiscardedBytes = 16 * 1024 * 1024;

/** Reads the request body. Throws a StatusError if it is too large or incomplete. */
export async function readBody(incoming: IncomingMessage, signal: AbortSignal): Promise<Buffer> {
  return await abortable(collect(incoming), signal);
}

function collect(incoming: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = [];
    let size = 0;
    const onAborted = () => reject(badRequest('the body of the request broke off'));
    incoming.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBodyBytes) chunks.push(chunk);
      else chunks = [];
      if (size > maxDiscardedBytes) reject(tooLarge(maxBodyBytes));
    });
    incoming.on('end', () => {
      if (size <= maxBodyBytes) resolve(Buffer.concat(chunks));
      else reject(tooLarge(maxBodyBytes));
    });
    // Every request ends with `close`, also after a complete body. No error is created then,
    // because that would cost more than reading the body.
    incoming.on('close', () => incoming.readableEnded || onAborted()).on('error', onAborted);
  });
}

/**
 * The maximum size of a body that is read, validated and stored without yielding to the event loop.
 */
const smallBodyBytes = 64 * 1024;

/** Yields to the event loop between two steps of processing a large body. */
export async function yieldAfterLargeBody({ length }: Uint8Array): Promise<void> {
  if (length > smallBodyBytes) await nextTurn();
}
