import type { Mount } from '../../src/cri/index.ts';
import type { SimulatedFiles } from './files.ts';

/** The content that a program reads from a path, or the reason why it cannot. */
export type FileAnswer =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly why: string };

const maxPrivateBytes = 1 << 20;
const missing: FileAnswer = { ok: false, why: 'No such file or directory' };
const readOnly: FileAnswer = { ok: false, why: 'Read-only file system' };
const full: FileAnswer = { ok: false, why: 'No space left on device' };
const done: FileAnswer = { ok: true, text: '' };

/**
 * The files visible in one container: its own, which are deleted with it, and those of the machine
 * through its mounts.
 */
export class ContainerFiles {
  readonly #own = new Map<string, string>();
  readonly #mounts: readonly Mount[];
  readonly #machine: SimulatedFiles;
  #ownBytes = 0;

  constructor(mounts: readonly Mount[], machine: SimulatedFiles) {
    // Of nested mounts the deepest one applies.
    this.#mounts = [...mounts].sort((a, b) => b.containerPath.length - a.containerPath.length);
    this.#machine = machine;
  }

  read(path: string): FileAnswer {
    if (path === '/dev/null') return done;
    const mounted = this.#mounted(path);
    const text = mounted === undefined ? this.#own.get(path) : this.#machine.read(mounted.hostPath);
    return text === undefined ? missing : { ok: true, text };
  }

  write(path: string, text: string, how: 'replace' | 'append'): FileAnswer {
    if (path === '/dev/null') return done;
    const mounted = this.#mounted(path);
    if (mounted === undefined) return this.#writeOwn(path, text, how);
    if (mounted.readonly) return readOnly;
    return attempt(() =>
      how === 'replace'
        ? this.#machine.write(mounted.hostPath, text)
        : this.#machine.append(mounted.hostPath, text),
    );
  }

  remove(path: string): FileAnswer {
    const before = this.read(path);
    if (!before.ok) return before;
    const mounted = this.#mounted(path);
    if (mounted !== undefined) {
      return mounted.readonly ? readOnly : attempt(() => this.#machine.remove(mounted.hostPath));
    }
    this.#own.delete(path);
    this.#ownBytes -= before.text.length;
    return done;
  }

  /** How many bytes the container wrote into its writable layer. */
  get ownBytes(): number {
    return this.#ownBytes;
  }

  get ownFiles(): number {
    return this.#own.size;
  }

  #writeOwn(path: string, text: string, how: 'replace' | 'append'): FileAnswer {
    const before = this.#own.get(path) ?? '';
    const after = how === 'replace' ? text : before + text;
    const bytes = this.#ownBytes + after.length - before.length;
    if (bytes > maxPrivateBytes) return full;
    this.#own.set(path, after);
    this.#ownBytes = bytes;
    return done;
  }

  #mounted(path: string): { readonly hostPath: string; readonly readonly: boolean } | undefined {
    for (const mount of this.#mounts) {
      const rest = below(mount.containerPath, path);
      if (rest !== undefined) return { hostPath: mount.hostPath + rest, readonly: mount.readonly };
    }
    return undefined;
  }
}

/**
 * The rest of the path below the directory, with the leading slash; empty for the directory itself.
 */
function below(directory: string, path: string): string | undefined {
  const base = directory.endsWith('/') ? directory.slice(0, -1) : directory;
  if (path === base) return '';
  return path.startsWith(`${base}/`) ? path.slice(base.length) : undefined;
}

function attempt(act: () => void): FileAnswer {
  try {
    act();
    return done;
  } catch (error) {
    return { ok: false, why: error instanceof Error ? error.message : String(error) };
  }
}
