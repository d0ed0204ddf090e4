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

/** A file that stays the same file when its name changes, as log rotation requires. */
export interface OpenFile {
  append(text: string): void;
  close(): void;
}

/**
 * The files of the machine as the runtime and its containers access them: logs, termination
 * messages, mounted volumes. Calls throw when the machine's files do not allow the operation.
 */
export interface SimulatedFiles {
  /** Creates the file and its parent directories if needed. */
  open(path: string): OpenFile;
  read(path: string): string | undefined;
  write(path: string, text: string): void;
  append(path: string, text: string): void;
  remove(path: string): void;
}

/** Files in memory, with additional methods for tests. */
export interface MemoryFiles extends SimulatedFiles {
  rename(from: string, to: string): void;
  /** The names of the files and directories in a directory, in no order. */
  names(directory: string): readonly string[];
  paths(): readonly string[];
}

export interface MemoryFilesOptions {
  /** Above this total size the longest file is truncated at its beginning; 16 MiB unless given. */
  readonly maxBytes?: number;
}

interface MemoryFile {
  text: string;
  /** Removed, though it may still be open: data written to it is never read. */
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
    // A large piece at a time, so that writes to files at their limit stay fast.
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

/**
 * Removes this many bytes from the beginning of the longest file, or all of it; returns how many.
 */
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

/** The machine's own files. */
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
