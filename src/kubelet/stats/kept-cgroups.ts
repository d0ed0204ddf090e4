import type { CgroupHost, CgroupLayout, KeptFiles } from '../../lib/index.ts';
import type { CgroupFiles } from '../../resources/index.ts';
import { treeOf } from './container-cgroups.ts';

type Host = Pick<CgroupHost, 'look' | 'keptFiles'>;

interface Kept {
  readonly path: string;
  readonly files: CgroupFiles & Readonly<Record<'memory' | 'cpu', KeptFiles>>;
  isUsed: boolean;
}

/** The files of many cgroups that are looked at again and again; they stay open between two looks. */
export class KeptCgroups {
  readonly #host: Host;
  readonly #layout: CgroupLayout;
  readonly #kept = new Map<string, Kept>();

  constructor(host: Host, layout: CgroupLayout) {
    this.#host = host;
    this.#layout = layout;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** Of the cgroup somebody has now, at its path below each tree. */
  of(whose: string, path: string): CgroupFiles {
    let kept = this.#kept.get(whose);
    if (kept?.path !== path) {
      if (kept !== undefined) this.#drop(whose, kept);
      kept = { path, files: cgroupFiles(this.#host, this.#layout, path), isUsed: true };
      this.#kept.set(whose, kept);
    }
    kept.isUsed = true;
    return kept.files;
  }

  /** Those nobody asked for since the last time are closed. */
  sweep(): void {
    for (const [whose, kept] of this.#kept) {
      if (!kept.isUsed) this.#drop(whose, kept);
      kept.isUsed = false;
    }
  }

  /** All of them; they are opened anew when they are looked at again. */
  close(): void {
    for (const [whose, kept] of this.#kept) this.#drop(whose, kept);
  }

  #drop(whose: string, { files: { memory, cpu } }: Kept): void {
    memory.close();
    cpu.close();
    this.#kept.delete(whose);
  }
}

/** Where the kernel counts in several trees, those of processor and memory. */
function cgroupFiles(host: Host, layout: CgroupLayout, path: string): Kept['files'] {
  const below = path === '/' ? '' : path;
  const memory = filesIn(host, `${treeOf(layout)}${below}`);
  const cpu =
    layout.version === 2 ? memory : filesIn(host, `${layout.controllers.get('cpuacct') ?? ''}${below}`);
  return { version: layout.version, memory, cpu };
}

function filesIn(host: Host, directory: string): KeptFiles {
  return host.keptFiles?.(directory) ?? { look: (name) => host.look(`${directory}/${name}`), close() {} };
}
