import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Recorded {
  readonly program: string;
  readonly args: readonly string[];
}

/**
 * A directory of fake programs that record their arguments. Output and exit code are set per
 * program.
 */
export class ArgumentRecorder {
  readonly folder: string;
  readonly #log: string;

  constructor(folder: string, programs: Readonly<Record<string, string>>) {
    this.folder = join(folder, 'programs');
    this.#log = join(folder, 'arguments.log');
    mkdirSync(this.folder, { recursive: true });
    const script = join(this.folder, '.recorder');
    const note = `printf '%s\\0' "$#" "\${0##*/}" "$@" >> '${this.#log}'`;
    const cases = Object.entries(programs).map(([name, act]) => `${name}) ${act};;`);
    writeFileSync(script, ['#!/bin/sh', note, 'case "${0##*/}" in', ...cases, 'esac', ''].join('\n'));
    chmodSync(script, 0o755);
    for (const name of Object.keys(programs)) symlinkSync(script, join(this.folder, name));
  }

  /** Returns the calls recorded since the previous call of this method. */
  take(): readonly Recorded[] {
    const found: Recorded[] = [];
    const words = readLog(this.#log).split('\0');
    while (words.length > 1) {
      const count = Number(words.shift());
      const [program = '', ...args] = words.splice(0, count + 1);
      found.push({ program, args });
    }
    writeFileSync(this.#log, '');
    return found;
  }
}

function readLog(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
