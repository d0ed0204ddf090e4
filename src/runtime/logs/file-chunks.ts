import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { TrailFile } from './log-trail.ts';

const chunkBytes = 256 << 10;

export interface ChunkRange {
  readonly from: number;
  /** Where to end though more may follow; as far as there is something unless given. */
  readonly to?: number | undefined;
}

/** The log in pieces, from a place in it; each is good until the next is asked for. Reads no faster than it is asked. */
export async function* chunksOf(
  { handle, format }: TrailFile,
  range: ChunkRange,
): AsyncGenerator<Uint8Array> {
  if (format === 'gzip') yield* unpacked({ handle, format: 'plain' }, range);
  else yield* plain({ handle, format }, range);
}

async function* plain({ handle }: TrailFile, { from, to = Number.POSITIVE_INFINITY }: ChunkRange) {
  const buffer = new Uint8Array(chunkBytes);
  for (let at = from; at < to; ) {
    const length = await handle.read(buffer.subarray(0, Math.min(chunkBytes, to - at)), at);
    if (length === 0) return;
    yield buffer.subarray(0, length);
    at += length;
  }
}

/** What is damaged ends where the damage begins: the rest of the log is worth more than an error. */
async function* unpacked(file: TrailFile, { from }: ChunkRange) {
  const packed = Readable.from(copies(file));
  const gunzip = createGunzip();
  packed.on('error', (error) => gunzip.destroy(error));
  let skip = from;
  try {
    for await (const chunk of packed.pipe(gunzip)) {
      const bytes: Uint8Array = chunk;
      if (skip < bytes.length) yield bytes.subarray(skip);
      skip = Math.max(0, skip - bytes.length);
    }
  } catch (error) {
    if (!isDamage(error)) throw error;
  } finally {
    packed.destroy();
    gunzip.destroy();
  }
}

async function* copies(file: TrailFile) {
  for await (const chunk of plain(file, { from: 0 })) yield Uint8Array.from(chunk);
}

function isDamage(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && code.startsWith('Z_');
}
