import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ProcessIdentity, ProcessTable } from '../../src/lib/index.ts';

const processes = new ProcessTable();

/**
 * Creates a containerd that can be killed and prevented from starting: a script, first on the PATH,
 * that executes the real one unless it is disabled.
 */
export class FragileContainerd {
  readonly #dataDir: string;

  constructor(dataDir: string) {
    this.#dataDir = dataDir;
  }

  /** The directory of the script, to be prepended to the PATH. */
  get path(): string {
    return join(this.#dataDir, 'fragile');
  }

  get #awayFile(): string {
    return join(this.path, 'away');
  }

  async prepare(): Promise<void> {
    await mkdir(this.path, { recursive: true });
    const program = join(this.path, 'containerd');
    const script = `#!/bin/sh
if [ -e ${this.#awayFile} ]; then
  echo 'kept from starting by a test' >&2
  exit 1
fi
PATH=$(printf %s "$PATH" | sed 's,${this.path}:,,g')
exec containerd "$@"
`;
    await writeFile(program, script);
    await chmod(program, 0o755);
  }

  async pid(): Promise<number> {
    const text = await readFile(join(this.#dataDir, 'containerd', 'containerd.pid'), 'utf8');
    return JSON.parse(text).pid;
  }

  /** Kills containerd and returns the killed process. */
  async kill(): Promise<ProcessIdentity | undefined> {
    const found = await processes.find(await this.pid());
    if (found !== undefined) await processes.signal(found, 'SIGKILL');
    return found;
  }

  /** Prevents containerd from starting until it is enabled again. */
  async keepAway(): Promise<void> {
    await writeFile(this.#awayFile, '');
  }

  async letBack(): Promise<void> {
    await rm(this.#awayFile, { force: true });
  }
}
