import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const mountProgram = fileURLToPath(new URL('mount-nfs.ts', import.meta.url));

/**
 * Stands in for a client of NFS, which not every kernel has, and for its server: a folder of programs to be found before
 * those of the machine. What they mount is a real file system, which can be silenced.
 */
export class NfsStandIn {
  readonly #control: string;
  readonly #programs: string;

  constructor(folder: string) {
    this.#control = join(folder, 'control');
    this.#programs = join(folder, 'programs');
    for (const path of [this.#control, this.#programs]) mkdirSync(path, { recursive: true });
    this.#write('mount', [
      'if [ "$1" = -t ] && [ "$2" = nfs ]; then',
      `  exec '${process.execPath}' '${mountProgram}' '${this.#control}' "$@"`,
      'fi',
    ]);
    // A forced or lazy unmount is never held up.
    this.#write('umount', [
      `echo "umount $*" >> '${this.#control}/calls.log'`,
      `[ "$1" = -f ] || [ "$1" = -l ] || while [ -e '${this.#control}/hold' ]; do sleep 0.05; done`,
    ]);
  }

  /** Of a process that is to use it. */
  get path(): string {
    return `${this.#programs}:${process.env['PATH']}`;
  }

  /** What was run, each with its arguments. */
  calls(of: 'mount' | 'umount', part = ''): readonly string[] {
    const log = join(this.#control, 'calls.log');
    const lines = existsSync(log) ? readFileSync(log, 'utf8').split('\n') : [];
    return lines.filter((line) => line.startsWith(`${of} `) && line.includes(part));
  }

  mounting(what: 'works' | 'fail' | 'half' | 'hang'): void {
    writeFileSync(join(this.#control, 'trouble'), what);
  }

  unmounting(what: 'works' | 'hang'): void {
    this.#flag('hold', what === 'hang');
  }

  /** Whoever asks a silent one is stuck in the kernel, and not even a kill ends it. What is asked of one that is gone fails. */
  server(what: 'answers' | 'silent' | 'gone'): void {
    for (const name of ['silent', 'gone']) this.#flag(name, what === name);
  }

  #flag(name: string, isSet: boolean): void {
    const path = join(this.#control, name);
    if (isSet) writeFileSync(path, '');
    else rmSync(path, { force: true });
  }

  #write(name: string, lines: readonly string[]): void {
    const path = join(this.#programs, name);
    // The machine's own is the next one on the way.
    const rest = [`PATH="\${PATH#*:}"`, `exec ${name} "$@"`];
    writeFileSync(path, `${['#!/bin/sh', ...lines, ...rest].join('\n')}\n`);
    chmodSync(path, 0o755);
  }
}
