import { copyFile, open, rename, stat, truncate } from 'node:fs/promises';

export const maxLogBytes: number = 10 * 1024 * 1024;

/** How a log is cut: a file nobody writes to is moved aside, one that is written to is copied and emptied in place. */
export type LogWriter = 'none' | 'running';

/** Keeps the log within its limit: when it is over, its content becomes the one old log. */
export async function rotateLog(path: string, writer: LogWriter, maxBytes = maxLogBytes): Promise<void> {
  const size = await logSize(path);
  if (size <= maxBytes) return;
  if (writer === 'none') {
    await rename(path, `${path}.1`);
    return;
  }
  // The writer appends, so it goes on at the new end. Lines written between the two steps are lost.
  await copyFile(path, `${path}.1`);
  await truncate(path);
}

export async function logSize(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}

const tailBytes = 16 * 1024;

/** The last lines written after the offset. */
export async function tailLog(path: string, fromByte: number, lines: number): Promise<string> {
  const size = await logSize(path);
  const start = Math.max(fromByte, size - tailBytes);
  if (start >= size) return '';
  await using file = await open(path, 'r');
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start);
  return buffer.toString('utf8', 0, bytesRead).trimEnd().split('\n').slice(-lines).join('\n');
}
