import { closeSync, openSync, readSync } from 'node:fs';

/**
 * For files of the kernel that are read again and again, each time whole: to open one costs more than to read it. What was
 * not read between two sweeps is closed, and so is a file that is gone.
 */
export interface KeptReader {
  /** Fails as `read` of the host does. */
  read(path: string): Promise<string>;
  sweep(): void;
  /** All of them; they are opened anew when they are read again. */
  close(): void;
}

interface Kept {
  readonly file: number;
  isRead: boolean;
}

const bufferBytes = 16_384;

/** Longer files are cut. */
export function hostKeptReader(): KeptReader & { readonly size: number } {
  const kept = new Map<string, Kept>();
  const buffer = Buffer.allocUnsafe(bufferBytes);
  const textOf = (file: number) => buffer.toString('latin1', 0, readSync(file, buffer, 0, bufferBytes, 0));
  const drop = (path: string, { file }: Kept) => {
    closeSync(file);
    kept.delete(path);
  };
  const open = (path: string): string => {
    const file = openSync(path, 'r');
    kept.set(path, { file, isRead: true });
    return textOf(file);
  };
  return {
    get size() {
      return kept.size;
    },
    async read(path) {
      const known = kept.get(path);
      if (known === undefined) return open(path);
      known.isRead = true;
      try {
        return textOf(known.file);
      } catch {
        // It may have been made anew under its name.
        drop(path, known);
        return open(path);
      }
    },
    sweep() {
      for (const [path, each] of kept) {
        if (!each.isRead) drop(path, each);
        each.isRead = false;
      }
    },
    close() {
      for (const [path, each] of kept) drop(path, each);
    },
  };
}
