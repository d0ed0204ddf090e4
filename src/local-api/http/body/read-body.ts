import type { IncomingMessage } from 'node:http';
import { abortable } from '../../../lib/index.ts';
import { badRequest } from '../../api/status-errors.ts';
import { tooLarge } from '../http-errors.ts';

export const mostBodyBytes: number = 3 * 1024 * 1024;
/** So much more is read and dropped: who is still sending when the connection closes never sees why. */
const mostDroppedBytes = 16 * 1024 * 1024;

/** All that is sent along. Throws a refusal when it is too much or breaks off. */
export async function readBytes(incoming: IncomingMessage, signal: AbortSignal): Promise<Buffer> {
  return await abortable(collect(incoming), signal);
}

function collect(incoming: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = [];
    let size = 0;
    const lost = () => reject(badRequest('the body of the request broke off'));
    incoming.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= mostBodyBytes) chunks.push(chunk);
      else chunks = [];
      if (size > mostDroppedBytes) reject(tooLarge(mostBodyBytes));
    });
    incoming.on('end', () => {
      if (size <= mostBodyBytes) resolve(Buffer.concat(chunks));
      else reject(tooLarge(mostBodyBytes));
    });
    // Each request is closed one day, and making an error for nothing costs more than reading the body did.
    incoming.on('close', () => incoming.readableEnded || lost()).on('error', lost);
  });
}

/** What is shorter is read, checked and stored in one go. */
const shortBytes = 64 * 1024;

/** Lets the event loop take a turn between two steps of the work on a large body. */
export async function turnAfter({ length }: Uint8Array): Promise<void> {
  if (length > shortBytes) await new Promise<void>((resolve) => void setImmediate(resolve));
}
