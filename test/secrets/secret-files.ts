import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { Canaries } from './canaries.ts';

export interface SecretFile {
  /** The path relative to the searched directory. */
  readonly path: string;
  readonly canaries: readonly string[];
  /** Whether users other than root can read the file. */
  readonly readableBy: 'root' | 'others';
  readonly mode: string;
}

const largestBytes = 64 << 20;

/** All files below the directory, including its mounts, that contain a secret. */
export function secretFilesBelow(directory: string, canaries: Canaries): readonly SecretFile[] {
  return filesBelow(directory).flatMap((path) => {
    const found = canariesIn(path, canaries);
    if (found.length === 0) return [];
    const mode = (lstatSync(path).mode & 0o7777).toString(8);
    return [
      { path: relative(directory, path), canaries: found, readableBy: readersOf(path, directory), mode },
    ];
  });
}

function filesBelow(directory: string): readonly string[] {
  return unlessGone(() => readdirSync(directory, { withFileTypes: true }), []).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return filesBelow(path);
    return entry.isFile() ? [path] : [];
  });
}

function canariesIn(path: string, canaries: Canaries): readonly string[] {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  if (facts === undefined || facts.size > largestBytes) return [];
  return unlessGone(() => canaries.in(readFileSync(path)), []);
}

/**
 * Which users can read a file: it is protected if the file itself or any directory above it is
 * accessible to root only.
 */
function readersOf(path: string, top: string): SecretFile['readableBy'] {
  const { mode, uid } = lstatSync(path);
  if (uid === 0 && (mode & 0o077) === 0) return 'root';
  for (let at = dirname(path); at.startsWith(top); at = dirname(at)) {
    const way = lstatSync(at);
    if (way.uid === 0 && (way.mode & 0o011) === 0) return 'root';
    // Access for the group root counts as access for root only.
    if (way.uid === 0 && way.gid === 0 && (way.mode & 0o001) === 0) return 'root';
  }
  return uid === 0 && lstatSync(path).gid === 0 && (mode & 0o007) === 0 ? 'root' : 'others';
}

function unlessGone<T>(act: () => T, otherwise: T): T {
  try {
    return act();
  } catch {
    return otherwise;
  }
}
