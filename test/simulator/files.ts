import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { PathTree } from '../fakes/path-tree.ts';

/** An open file that stays the same file when it is renamed, as log rotation requires. */
export interface OpenFile {
  append(text: string): void;
  close(): void;
}

/**
 * The files of the machine as the runtime and its containers access them: logs, termination
 * messages and mounted volumes. Methods throw when the file system rejects the operation.
 */
export interface SimulatedFiles {
  /** Opens a file; creates it and its parent directories if needed. */
  open(path: string): OpenFile;
  read(path: string): string | undefined;
  write(path: string, text: string): void;
  append(path: string, text: string): void;
  remove(path: string): void;
}

/** In-memory files, with additional methods for tests. */
export interface MemoryFiles extends SimulatedFiles {
  rename(from: string, to: string): void;
  /** The names of the files and directories in a directory, in any order. */
  names(directory: string): readonly string[];
  paths(): readonly string[];
}

export interface MemoryFilesOptions {
  /**
   * The maximum total size, above which the longest file is truncated at its beginning; 16 MiB by
   * default.
   */
  readonly maxBytes?: number;
}

interface MemoryFile {
  text: string;
  /** Whether the file was removed; it may still be open, but data written to it is discarded. */
  gone: boolean;
}

export function memoryFiles(options: MemoryFilesOptions = {}): MemoryFiles {
  const maxBytes = options.maxBytes ?? 16 << 20;
  const files = new Map<string, MemoryFile>();
  const tree = new PathTree();
  let size = 0;
  const at = (path: string): MemoryFile => {
    const known = files.get(path);
    if (known !== undefined) return known;
    const created: MemoryFile = { text: '', gone: false };
    files.set(path, created);
    tree.add(path);
    return created;
  };
  const append = (file: MemoryFile, text: string) => {
    if (file.gone) return;
    file.text += text;
    size += text.length;
    // Truncates more than necessary, so that writes at the limit stay fast.
    while (size > maxBytes) size -= shorten(files, size - maxBytes + (maxBytes >> 4));
  };
  const remove = (path: string) => {
    const file = files.get(path);
    if (file === undefined) return;
    size -= file.text.length;
    file.gone = true;
    files.delete(path);
    tree.delete(path);
  };
  return {
    open(path) {
      const file = at(path);
      return { append: (text) => append(file, text), close: () => {} };
    },
    read: (path) => files.get(path)?.text,
    write(path, text) {
      remove(path);
      append(at(path), text);
    },
    append: (path, text) => append(at(path), text),
    remove,
    rename(from, to) {
      const file = files.get(from);
      if (file === undefined) return;
      remove(to);
      files.delete(from);
      tree.delete(from);
      files.set(to, file);
      tree.add(to);
    },
    names: (directory) => tree.names(directory),
    paths: () => [...files.keys()],
  };
}

/** Removes up to this many bytes from the beginning of the longest file; returns how many. */
function shorten(files: ReadonlyMap<string, MemoryFile>, bytes: number): number {
  let longest: MemoryFile | undefined;
  for (const file of files.values()) {
    if (longest === undefined || file.text.length > longest.text.length) longest = file;
  }
  if (longest === undefined || longest.text === '') return bytes;
  const taken = Math.min(longest.text.length, bytes);
  longest.text = longest.text.slice(taken);
  return taken;
}

const logMode = 0o640;

/** The real files of the machine. */
export function realFiles(): SimulatedFiles {
  return {
    open(path) {
      mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
      const fd = openSync(path, 'a', logMode);
      return { append: (text) => void writeSync(fd, text), close: () => closeSync(fd) };
    },
    read(path) {
      try {
        return readFileSync(path, 'utf8');
      } catch {
        return undefined;
      }
    },
    write: (path, text) => writeFileSync(path, text),
    append: (path, text) => appendFileSync(path, text),
    remove: (path) => rmSync(path, { force: true }),
  };
}
