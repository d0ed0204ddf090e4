import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import type { Logger, WriteOptions } from '../lib/index.ts';

/** The file operations for the copies of objects. Reading a missing file returns undefined. */
export interface CopyFiles {
  makeDirectory(path: string, mode: number): Promise<void>;
  names(directory: string): Promise<readonly string[]>;
  readEnd(path: string, maxBytes: number): Promise<Buffer | undefined>;
  replace(path: string, text: string, options: WriteOptions): Promise<void>;
  remove(path: string): Promise<void>;
}

/**
 * Copies of API objects by a key that the caller chooses. Reading never fails: a damaged copy
 * counts as missing.
 */
export interface ObjectCopies {
  read<T extends object>(key: string): Promise<T | undefined>;
  /** Reads all copies that are not damaged. */
  all<T extends object>(): Promise<readonly T[]>;
  write(key: string, object: object): Promise<void>;
  remove(key: string): Promise<void>;
  /** Removes all copies whose keys are not in the list. */
  retain(keys: readonly string[]): Promise<void>;
}

export interface CopiesOnDiskOptions {
  readonly files: CopyFiles;
  readonly directory: string;
  readonly logger: Logger;
}

/** The maximum size of a copy: an API object has at most 1 MiB of data, a third more in base64. */
const largestCopy = 4 << 20;
const modes = { directory: 0o700, file: 0o600 };

/** Stores one file per object, with mode 0600 because some are secrets. */
export class CopiesOnDisk implements ObjectCopies {
  readonly #options: CopiesOnDiskOptions;

  constructor(options: CopiesOnDiskOptions) {
    this.#options = options;
  }

  async read<T extends object>(key: string): Promise<T | undefined> {
    const found = await this.#readFile(fileName(key));
    return found?.key === key ? (found.object as T) : undefined;
  }

  async all<T extends object>(): Promise<readonly T[]> {
    const { files, directory } = this.#options;
    const found: T[] = [];
    for (const name of await files.names(directory)) {
      const copy = await this.#readFile(name);
      // A copy whose file name does not match its key is ignored.
      if (copy !== undefined && fileName(copy.key) === name) found.push(copy.object as T);
    }
    return found;
  }

  async write(key: string, object: object): Promise<void> {
    const { files, directory } = this.#options;
    await files.makeDirectory(directory, modes.directory);
    await files.replace(this.#path(key), JSON.stringify({ key, object }), { mode: modes.file });
  }

  async remove(key: string): Promise<void> {
    await this.#options.files.remove(this.#path(key));
  }

  async retain(keys: readonly string[]): Promise<void> {
    const { files, directory } = this.#options;
    const names = new Set(keys.map(fileName));
    for (const name of await files.names(directory)) {
      if (!names.has(name)) await files.remove(posix.join(directory, name));
    }
  }

  async #readFile(name: string): Promise<Copy | undefined> {
    const { files, directory, logger } = this.#options;
    try {
      const bytes = await files.readEnd(posix.join(directory, name), largestCopy);
      return bytes === undefined ? undefined : copyIn(bytes.toString('utf8'));
    } catch (error) {
      logger.error('Failed to read copy of object', error, { file: name });
      return undefined;
    }
  }

  #path(key: string): string {
    return posix.join(this.#options.directory, fileName(key));
  }
}

/** A hash as file name: namespace and name together can exceed the length limit of a file name. */
function fileName(key: string): string {
  return `${createHash('sha256').update(key).digest('hex')}.json`;
}

interface Copy {
  readonly key: string;
  readonly object: object;
}

/**
 * Parses a copy. Throws for text that is not JSON; returns undefined for JSON that is not the copy
 * of an object.
 */
function copyIn(text: string): Copy | undefined {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null) return undefined;
  const { key, object } = value as { readonly key?: unknown; readonly object?: unknown };
  return typeof key === 'string' && typeof object === 'object' && object !== null
    ? { key, object }
    : undefined;
}
