import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import type { Logger, WriteOptions } from '../lib/index.ts';
import type { ReferredObject } from './referred-store.ts';

/** Where copies are kept; what is not there is an answer, not a failure. */
export interface CopyFiles {
  makeDirectory(path: string, mode: number): Promise<void>;
  names(directory: string): Promise<readonly string[]>;
  readEnd(path: string, maxBytes: number): Promise<Buffer | undefined>;
  replace(path: string, text: string, options: WriteOptions): Promise<void>;
  remove(path: string): Promise<void>;
}

/** Copies of objects by a key of the caller's. Reading never fails: a copy that is damaged is as good as none. */
export interface ObjectCopies {
  read<T extends ReferredObject>(key: string): Promise<T | undefined>;
  write(key: string, object: ReferredObject): Promise<void>;
  remove(key: string): Promise<void>;
  /** All others are removed. */
  retain(keys: readonly string[]): Promise<void>;
}

export interface CopiesOnDiskOptions {
  readonly files: CopyFiles;
  readonly directory: string;
  readonly logger: Logger;
}

/** An object of the API has at most a mebibyte of data, a third more in base64. */
const largestCopy = 4 << 20;
const modes = { directory: 0o700, file: 0o600 };

/** One file an object, readable by nobody else: there are secrets among them. */
export class CopiesOnDisk implements ObjectCopies {
  readonly #options: CopiesOnDiskOptions;

  constructor(options: CopiesOnDiskOptions) {
    this.#options = options;
  }

  async read<T extends ReferredObject>(key: string): Promise<T | undefined> {
    const { files, logger } = this.#options;
    try {
      const bytes = await files.readEnd(this.#path(key), largestCopy);
      return bytes === undefined ? undefined : copyIn<T>(bytes.toString('utf8'), key);
    } catch (error) {
      logger.error('The copy of an object cannot be read', error, { object: key });
      return undefined;
    }
  }

  async write(key: string, object: ReferredObject): Promise<void> {
    const { files, directory } = this.#options;
    await files.makeDirectory(directory, modes.directory);
    await files.replace(this.#path(key), JSON.stringify({ key, object }), { mode: modes.file });
  }

  async remove(key: string): Promise<void> {
    await this.#options.files.remove(this.#path(key));
  }

  async retain(keys: readonly string[]): Promise<void> {
    const { files, directory } = this.#options;
    const kept = new Set(keys.map(fileName));
    for (const name of await files.names(directory)) {
      if (!kept.has(name)) await files.remove(posix.join(directory, name));
    }
  }

  #path(key: string): string {
    return posix.join(this.#options.directory, fileName(key));
  }
}

/** A namespace and a name together are longer than a file's name may be. */
function fileName(key: string): string {
  return `${createHash('sha256').update(key).digest('hex')}.json`;
}

/** Throws for what is no JSON; undefined for what is something else than the copy of that object. */
function copyIn<T extends ReferredObject>(text: string, key: string): T | undefined {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null) return undefined;
  const { key: written, object } = value as { readonly key?: unknown; readonly object?: unknown };
  return written === key && typeof object === 'object' && object !== null ? (object as T) : undefined;
}
