import { closeSync, existsSync, openSync, readSync } from 'node:fs';

/**
 * The files of one directory of the kernel, for who reads them again and again, each time whole: to open one costs more
 * than to read it.
 */
export interface KeptFiles {
  /** What the file says now; undefined where there is none, or it cannot be read. */
  look(name: string): string | undefined;
  /** Nothing stays open; what is looked at after that is opened anew. */
  close(): void;
}

const bufferBytes = 16_384;
/**
 * The kernel gives as many lines at once as fit into a page. What is shorter than this is all there is: no line of these
 * files is as long as the rest of the page.
 */
const wholeBytes = 1_024;
const mostMissing = 100;

/** Reads whole files of the kernel into one place, again and again. Not for files whose disk may keep one waiting. */
export class KernelFiles {
  #buffer: Buffer | undefined;
  /** Names of files some directory has not: what one lacks others of its kind lack, too. */
  readonly #missing = new Set<string>();

  /** Undefined where there is none, or it cannot be read. */
  look(path: string): string | undefined {
    const file = this.#opened(path);
    if (file === undefined) return undefined;
    try {
      return this.textOf(file);
    } catch {
      return undefined;
    } finally {
      closeSync(file);
    }
  }

  /** It costs more to fail to open one than to see that it is not there. */
  #opened(path: string): number | undefined {
    const name = path.slice(path.lastIndexOf('/') + 1);
    if (this.#missing.has(name) && !existsSync(path)) return undefined;
    const file = opened(path);
    if (file === undefined && this.#missing.size < mostMissing) this.#missing.add(name);
    return file;
  }

  textOf(file: number): string {
    this.#buffer ??= Buffer.allocUnsafe(bufferBytes);
    const length = readSync(file, this.#buffer, 0, bufferBytes, 0);
    return length < wholeBytes
      ? this.#buffer.toString('utf8', 0, length)
      : longText(file, Buffer.from(this.#buffer.subarray(0, length)));
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

export class KeptKernelFiles implements KeptFiles {
  readonly #directory: string;
  readonly #kernel: KernelFiles;
  readonly #open = new Map<string, number>();
  /** It costs more to fail to open one than to see that it is not there. */
  readonly #missing = new Set<string>();

  constructor(directory: string, kernel: KernelFiles) {
    this.#directory = directory;
    this.#kernel = kernel;
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
    const path = `${this.#directory}/${name}`;
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

function opened(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch {
    return undefined;
  }
}
