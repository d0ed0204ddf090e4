import { posix } from 'node:path';
import type { FileFacts, ManifestFiles, WatchListener } from '../../src/sources/index.ts';

interface MemoryFile {
  readonly bytes: Uint8Array;
  readonly inode: number;
  readonly version: number;
}

/**
 * Manifest files in memory, for tests and simulated nodes. Parent directories are created
 * automatically.
 */
export class MemoryManifestFiles implements ManifestFiles {
  readonly #files = new Map<string, MemoryFile>();
  readonly #directories = new Map<string, number>();
  readonly #watchers = new Map<WatchListener, string>();
  readonly #failures = new Map<string, Error>();
  #watchFailure: Error | undefined;
  #counter = 0;

  /** Writes the file in place, as some editors do. */
  write(path: string, content: string | Uint8Array): void {
    this.#put(path, content, this.#files.get(path)?.inode ?? ++this.#counter);
  }

  /** Replaces the old file with a new one, as a rename does. */
  replace(path: string, content: string | Uint8Array): void {
    this.#put(path, content, ++this.#counter);
  }

  makeDirectory(path: string): void {
    for (let at = path; at !== '/' && at !== '.'; at = posix.dirname(at))
      if (!this.#directories.has(at)) this.#directories.set(at, ++this.#counter);
    this.#hint(path);
  }

  /** Removes a file, or a directory with its content. */
  remove(path: string): void {
    for (const known of [this.#files, this.#directories])
      for (const key of [...known.keys()]) if (key === path || key.startsWith(`${path}/`)) known.delete(key);
    this.#hint(path);
  }

  /** Makes every access to the path fail with the error, until it is reset with undefined. */
  fail(path: string, error: Error | undefined): void {
    if (error === undefined) this.#failures.delete(path);
    else this.#failures.set(path, error);
  }

  /** Drops all later file events of existing watches. */
  dropWatchers(): void {
    this.#watchers.clear();
  }

  /**
   * Ends existing watches and makes every new watch fail with the error, until it is reset with
   * undefined.
   */
  failWatches(error: Error | undefined): void {
    this.#watchFailure = error;
    if (error !== undefined) this.#watchers.clear();
  }

  async stat(path: string): Promise<FileFacts | undefined> {
    this.#check(path);
    const file = this.#files.get(path);
    if (file !== undefined) {
      const { bytes, inode, version } = file;
      return { kind: 'file', size: bytes.byteLength, identity: `${inode}`, version: `${inode}:${version}` };
    }
    const inode = this.#directories.get(path);
    return inode === undefined
      ? undefined
      : { kind: 'directory', size: 0, identity: `${inode}`, version: `${inode}` };
  }

  async list(path: string): Promise<readonly string[]> {
    this.#check(path);
    const all = [...this.#files.keys(), ...this.#directories.keys()];
    return all.filter((key) => posix.dirname(key) === path).map((key) => posix.basename(key));
  }

  async read(path: string): Promise<Uint8Array | undefined> {
    this.#check(path);
    return this.#files.get(path)?.bytes;
  }

  watch(path: string, listener: WatchListener): Disposable {
    if (this.#watchFailure === undefined) this.#watchers.set(listener, path);
    else listener.onLost(this.#watchFailure);
    return { [Symbol.dispose]: () => this.#watchers.delete(listener) };
  }

  #put(path: string, content: string | Uint8Array, inode: number): void {
    this.makeDirectory(posix.dirname(path));
    const bytes = typeof content === 'string' ? Buffer.from(content) : content;
    this.#files.set(path, { bytes, inode, version: ++this.#counter });
    this.#hint(path);
  }

  #check(path: string): void {
    const failure = this.#failures.get(path);
    if (failure !== undefined) throw failure;
  }

  #hint(path: string): void {
    for (const [listener, watched] of [...this.#watchers])
      if (watched === path || watched === posix.dirname(path)) listener.onHint();
  }
}
