import { closeSync, existsSync, openSync, readSync } from 'node:fs';

/** The files of one directory. */
export interface KeptFiles {
  /** What the file says now; undefined where there is none, or it cannot be read. */
  look(name: string): string | undefined;
}

/**
 * For files of the kernel that are read again and again, each time whole: to open one costs more than to read it. Those of
 * directories nobody asked for between two sweeps are closed, and so is a file that is gone.
 */
export interface KeptReader {
  /** Good until the next sweep. */
  in(directory: string): KeptFiles;
  sweep(): void;
  /** All of them; they are opened anew when they are read again. */
  close(): void;
}

/** For hosts that need not keep anything open. */
export function plainReader(look: (path: string) => string | undefined): KeptReader {
  return {
    in: (directory) => ({ look: (name) => look(`${directory}/${name}`) }),
    sweep() {},
    close() {},
  };
}

const bufferBytes = 16_384;

/** Reads whole files of the kernel into one place, again and again. Not for files whose disk may keep one waiting. */
export class KernelFiles {
  #buffer: Buffer | undefined;

  /** Undefined where there is none, or it cannot be read. */
  look(path: string): string | undefined {
    const file = opened(path);
    if (file === undefined) return undefined;
    try {
      return this.textOf(file);
    } catch {
      return undefined;
    } finally {
      closeSync(file);
    }
  }

  textOf(file: number): string {
    this.#buffer ??= Buffer.allocUnsafe(bufferBytes);
    const length = readSync(file, this.#buffer, 0, bufferBytes, 0);
    return length < bufferBytes
      ? this.#buffer.toString('utf8', 0, length)
      : longText(file, Buffer.from(this.#buffer));
  }
}

function longText(file: number, begin: Buffer): string {
  const parts = [begin];
  for (let at = begin.length; ; ) {
    const part = Buffer.allocUnsafe(bufferBytes);
    const length = readSync(file, part, 0, bufferBytes, at);
    if (length === 0) return Buffer.concat(parts).toString();
    parts.push(part.subarray(0, length));
    at += length;
  }
}

class KeptDirectory implements KeptFiles {
  readonly #path: string;
  readonly #kernel: KernelFiles;
  readonly #open = new Map<string, number>();
  /** It costs more to fail to open one than to see that it is not there. */
  readonly #missing = new Set<string>();
  isUsed = true;

  constructor(path: string, kernel: KernelFiles) {
    this.#path = path;
    this.#kernel = kernel;
  }

  get size(): number {
    return this.#open.size;
  }

  look(name: string): string | undefined {
    const file = this.#open.get(name);
    if (file === undefined) return this.#lookFirst(name);
    try {
      return this.#kernel.textOf(file);
    } catch {
      // It may have been made anew under its name.
      this.#drop(name, file);
      return this.#lookFirst(name);
    }
  }

  close(): void {
    for (const [name, file] of this.#open) this.#drop(name, file);
  }

  #lookFirst(name: string): string | undefined {
    const path = `${this.#path}/${name}`;
    if (this.#missing.has(name) && !existsSync(path)) return undefined;
    const file = opened(path);
    if (file === undefined) {
      this.#missing.add(name);
      return undefined;
    }
    this.#open.set(name, file);
    try {
      return this.#kernel.textOf(file);
    } catch {
      this.#drop(name, file);
      return undefined;
    }
  }

  #drop(name: string, file: number): void {
    closeSync(file);
    this.#open.delete(name);
  }
}

export function hostKeptReader(kernel = new KernelFiles()): KeptReader & { readonly size: number } {
  const kept = new Map<string, KeptDirectory>();
  const drop = (path: string, directory: KeptDirectory) => {
    directory.close();
    kept.delete(path);
  };
  return {
    /** How many files are open. */
    get size() {
      return kept.values().reduce((sum, { size }) => sum + size, 0);
    },
    in(path) {
      let directory = kept.get(path);
      if (directory === undefined) {
        directory = new KeptDirectory(path, kernel);
        kept.set(path, directory);
      }
      directory.isUsed = true;
      return directory;
    },
    sweep() {
      for (const [path, directory] of kept) {
        if (!directory.isUsed) drop(path, directory);
        directory.isUsed = false;
      }
    },
    close() {
      for (const [path, directory] of kept) drop(path, directory);
    },
  };
}

function opened(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch {
    return undefined;
  }
}
