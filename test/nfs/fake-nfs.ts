import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const mountProgram = fileURLToPath(new URL('mount-nfs.ts', import.meta.url));

/**
 * A fake NFS client and server for machines whose kernel has no NFS: wrappers of mount and umount
 * that precede the real programs in the PATH. They mount a real file system, which can be made
 * unresponsive.
 */
export class FakeNfs {
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
    // A forced or lazy unmount is never delayed.
    this.#write('umount', [
      `echo "umount $*" >> '${this.#control}/calls.log'`,
      `[ "$1" = -f ] || [ "$1" = -l ] || while [ -e '${this.#control}/hold' ]; do sleep 0.05; done`,
    ]);
  }

  /** The PATH for processes that should use the fake NFS client. */
  get path(): string {
    return `${this.#programs}:${process.env['PATH']}`;
  }

  /** The recorded mount or umount commands with their arguments. */
  calls(of: 'mount' | 'umount', part = ''): readonly string[] {
    const log = join(this.#control, 'calls.log');
    const lines = existsSync(log) ? readFileSync(log, 'utf8').split('\n') : [];
    return lines.filter((line) => line.startsWith(`${of} `) && line.includes(part));
  }

  mounting(what: 'works' | 'fail' | 'half' | 'hang'): void {
    writeFileSync(join(this.#control, 'problem'), what);
  }

  unmounting(what: 'works' | 'hang'): void {
    this.#flag('hold', what === 'hang');
  }

  /**
   * Sets the state of the server. A caller of a silent server is stuck in the kernel and cannot be
   * killed; calls to a server that has exited fail.
   */
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
    // The wrapper script finds the real program in the rest of the PATH.
    const rest = [`PATH="\${PATH#*:}"`, `exec ${name} "$@"`];
    writeFileSync(path, `${['#!/bin/sh', ...lines, ...rest].join('\n')}\n`);
    chmodSync(path, 0o755);
  }
}
