import { posix } from 'node:path';
import { KubelingError } from '../../src/lib/index.ts';
import type { LogFiles, LogHandle, LogHint } from '../../src/runtime/index.ts';

interface MemoryLog {
  readonly identity: string;
  bytes: Buffer;
}

type Watcher = { readonly directory: string; readonly hint: (what: LogHint) => void };

/** Logs in memory, with the operations of a container runtime and of a rotation. */
export class MemoryLogFiles implements LogFiles {
  readonly #files = new Map<string, MemoryLog>();
  readonly #watchers = new Set<Watcher>();
  readonly #refused = new Set<string>();
  #made = 0;
  #open = 0;

  /** The number of open file handles. */
  get handles(): number {
    return this.#open;
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  append(path: string, content: string | Uint8Array): void {
    const known = this.#files.get(path);
    const file = known ?? this.#make(path);
    file.bytes = Buffer.concat([file.bytes, Buffer.from(content)]);
    this.#tell(path, known === undefined ? 'renamed' : 'written');
  }

  /** Truncates a log in place, keeping the same file. */
  truncate(path: string): void {
    const file = this.#files.get(path);
    if (file !== undefined) file.bytes = Buffer.alloc(0);
    this.#tell(path, 'written');
  }

  rename(from: string, to: string): void {
    const file = this.#files.get(from);
    if (file === undefined) return;
    this.#files.delete(from);
    this.#files.set(to, file);
    this.#tell(to, 'renamed');
  }

  /** Opens a log for writes that continue in the same file after a rename. */
  writer(path: string): (content: string | Uint8Array) => void {
    const known = this.#files.get(path);
    const file = known ?? this.#make(path);
    if (known === undefined) this.#tell(path, 'renamed');
    return (content) => {
      file.bytes = Buffer.concat([file.bytes, Buffer.from(content)]);
      this.#tell(path, 'written');
    };
  }

  remove(path: string): void {
    this.#files.delete(path);
    this.#tell(path, 'renamed');
  }

  /** Makes the path a file that must not be opened, such as a FIFO. */
  refuse(path: string): void {
    this.#refused.add(path);
  }

  contentOf(path: string): Buffer | undefined {
    return this.#files.get(path)?.bytes;
  }

  async open(path: string): Promise<LogHandle | undefined> {
    if (this.#refused.has(path)) throw new KubelingError('LOG_REFUSED', `Cannot read the log ${path}`);
    const file = this.#files.get(path);
    if (file === undefined) return undefined;
    this.#open++;
    let state: 'open' | 'closed' = 'open';
    return {
      identity: file.identity,
      size: async () => file.bytes.length,
      read: async (into, position) => file.bytes.subarray(position).copy(into),
      [Symbol.asyncDispose]: async () => {
        if (state === 'open') this.#open--;
        state = 'closed';
      },
    };
  }

  async identityAt(path: string): Promise<string | undefined> {
    return this.#files.get(path)?.identity;
  }

  async names(directory: string): Promise<readonly string[]> {
    return [...this.#files.keys()]
      .filter((path) => posix.dirname(path) === directory)
      .map((path) => posix.basename(path));
  }

  watch(directory: string, hint: (what: LogHint) => void): Disposable {
    const watcher = { directory, hint };
    this.#watchers.add(watcher);
    return { [Symbol.dispose]: () => this.#watchers.delete(watcher) };
  }

  #make(path: string): MemoryLog {
    const file = { identity: `${++this.#made}`, bytes: Buffer.alloc(0) };
    this.#files.set(path, file);
    return file;
  }

  #tell(path: string, what: LogHint): void {
    for (const { directory, hint } of [...this.#watchers]) if (directory === posix.dirname(path)) hint(what);
  }
}
