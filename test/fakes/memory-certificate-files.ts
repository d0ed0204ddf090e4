import { dirname, resolve } from 'node:path';
import type { CertificateFileKind, CertificateFiles } from '../../src/certificates/index.ts';
import { KubelingError } from '../../src/lib/index.ts';

type Entry =
  | { readonly kind: 'file'; readonly text: string; readonly mode: number }
  | { readonly kind: 'link'; readonly target: string };

/** The files of a machine that exists only in memory. */
export class MemoryCertificateFiles implements CertificateFiles {
  readonly #entries = new Map<string, Entry>();
  readonly #watchers = new Set<{ readonly paths: readonly string[]; readonly changed: () => void }>();

  async read(path: string): Promise<string | undefined> {
    const entry = this.#behind(path);
    return entry?.kind === 'file' ? entry.text : undefined;
  }

  async kindAt(path: string): Promise<CertificateFileKind | undefined> {
    const entry = this.#entries.get(path);
    if (entry !== undefined) return entry.kind;
    return this.paths().some((other) => other.startsWith(`${path}/`)) ? 'directory' : undefined;
  }

  async readLink(path: string): Promise<string | undefined> {
    const entry = this.#entries.get(path);
    return entry?.kind === 'link' ? entry.target : undefined;
  }

  async names(directory: string): Promise<readonly string[]> {
    const inside = this.paths().filter((path) => path.startsWith(`${directory}/`));
    return [...new Set(inside.map((path) => path.slice(directory.length + 1).split('/')[0] ?? ''))].sort();
  }

  async replace(path: string, text: string, mode: number): Promise<void> {
    this.#set(path, { kind: 'file', text, mode });
  }

  async link(target: string, path: string): Promise<void> {
    if (this.#entries.has(path)) throw new KubelingError('FILE_WRITE', `Cannot write ${path}: it exists`);
    this.#set(path, { kind: 'link', target });
  }

  async rename(from: string, to: string): Promise<void> {
    const entry = this.#entries.get(from);
    if (entry === undefined)
      throw new KubelingError('FILE_WRITE', `Cannot write ${to}: ${from} does not exist`);
    this.#entries.delete(from);
    this.#set(to, entry);
  }

  async remove(path: string): Promise<void> {
    this.#entries.delete(path);
    this.#tell(path);
  }

  watch(paths: readonly string[], changed: () => void): Disposable {
    const watcher = { paths, changed };
    this.#watchers.add(watcher);
    return { [Symbol.dispose]: () => void this.#watchers.delete(watcher) };
  }

  /** Returns the paths of all files and links, sorted. */
  paths(): string[] {
    return [...this.#entries.keys()].sort();
  }

  modeOf(path: string): number | undefined {
    const entry = this.#behind(path);
    return entry?.kind === 'file' ? entry.mode : undefined;
  }

  #set(path: string, entry: Entry): void {
    this.#entries.set(path, entry);
    this.#tell(path);
  }

  #tell(path: string): void {
    for (const { paths, changed } of [...this.#watchers]) if (paths.includes(path)) changed();
  }

  #behind(path: string, depth = 0): Entry | undefined {
    const entry = this.#entries.get(path);
    if (entry?.kind !== 'link' || depth > 8) return entry;
    return this.#behind(resolve(dirname(path), entry.target), depth + 1);
  }
}
