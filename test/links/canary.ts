import { lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

export const canaryText = 'canary-9d1f77aa2c: of the host, for root alone\n';

/**
 * Files owned by root outside of all pods that must never be read or changed through a link; their
 * names also occur in log directories and volumes.
 */
export class Canary {
  readonly directory: string;
  readonly file: string;
  readonly #before: string;

  constructor(directory: string) {
    this.directory = directory;
    this.file = join(directory, 'secret');
    mkdirSync(join(directory, 'inner'), { recursive: true, mode: 0o700 });
    for (const name of ['secret', '0.log', '0.log.20260101-000000', '0.log.20260101-000001.gz', 'inner/file'])
      writeFileSync(join(directory, name), canaryText, { mode: 0o600 });
    this.#before = this.#look();
  }

  /**
   * The current and the initial state of the canary, line by line; both are equal if nothing was
   * changed.
   */
  compare(): readonly [now: string, before: string] {
    return [this.#look(), this.#before];
  }

  #look(): string {
    const names = ['', ...readdirSync(this.directory, { recursive: true }).map(String)].sort();
    return names.map((name) => describe(join(this.directory, name))).join('\n');
  }
}

function describe(path: string): string {
  const facts = lstatSync(path);
  // The ctime changes with every access except reading.
  const { ino, uid, gid, nlink, ctimeMs } = facts;
  const content = facts.isFile() ? JSON.stringify(readFileSync(path, 'latin1')) : '';
  return [path, ino, facts.mode.toString(8), uid, gid, nlink, ctimeMs, content].join(' ');
}

/**
 * The regular files below the directory that contain the canary's text, also compressed. Follows no
 * link.
 */
export function filesWithCanary(directory: string): readonly string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return filesWithCanary(path);
    return entry.isFile() && textOf(readFileSync(path)).includes(canaryText.trim()) ? [path] : [];
  });
}

function textOf(bytes: Buffer): string {
  const isPacked = bytes[0] === 0x1f && bytes[1] === 0x8b;
  try {
    return String(isPacked ? gunzipSync(bytes) : bytes);
  } catch {
    return String(bytes);
  }
}
