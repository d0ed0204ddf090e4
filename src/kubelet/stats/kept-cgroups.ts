import type { CgroupHost, CgroupLayout, KeptFiles } from '../../lib/index.ts';
import type { CgroupFiles } from '../../resources/index.ts';
import { treeOf } from './container-cgroups.ts';
import { InUse } from './in-use.ts';

type Host = Pick<CgroupHost, 'look' | 'keptFiles'>;

interface KeptCgroup {
  readonly path: string;
  readonly files: CgroupFiles;
  close(): void;
}

/** Files of the kernel on many cgroups and networks that are looked at again and again; they stay open between two looks. */
export class KeptCgroups {
  readonly #host: Host;
  readonly #layout: CgroupLayout;
  readonly #cgroups = new InUse<KeptCgroup>();
  readonly #networks = new InUse<KeptFiles>();

  constructor(host: Host, layout: CgroupLayout) {
    this.#host = host;
    this.#layout = layout;
  }

  get size(): number {
    return this.#cgroups.size + this.#networks.size;
  }

  /** Of the cgroup somebody has now, at its path below each tree. */
  of(whose: string, path: string): CgroupFiles {
    const kept = this.#cgroups.get(whose);
    return kept?.path === path ? kept.files : this.#cgroups.set(whose, this.#opened(path)).files;
  }

  /**
   * What has gone over the interfaces of a sandbox that has this process, as `net/dev` says it. A network lives on for as
   * long as this is open: not beyond the next look at the others.
   */
  networkOf(sandbox: string, process: string): string | undefined {
    const files =
      this.#networks.get(sandbox) ?? this.#networks.set(sandbox, this.#in(`/proc/${process}/net`));
    const text = files.look('dev');
    // The process has gone, and another may have its number by the next look.
    if (text === undefined) this.#networks.drop(sandbox);
    return text;
  }

  /** Those nobody asked for since the last time are closed. */
  sweep(): void {
    this.#cgroups.sweep();
    this.#networks.sweep();
  }

  /** All of them; they are opened anew when they are looked at again. */
  close(): void {
    this.#cgroups.close();
    this.#networks.close();
  }

  /** Where the kernel counts in several trees, those of processor and memory. */
  #opened(path: string): KeptCgroup {
    const { version } = this.#layout;
    const below = path === '/' ? '' : path;
    const memory = this.#in(`${treeOf(this.#layout)}${below}`);
    const cpu =
      this.#layout.version === 2
        ? memory
        : this.#in(`${this.#layout.controllers.get('cpuacct') ?? ''}${below}`);
    const close = () => {
      memory.close();
      cpu.close();
    };
    return { path, files: { version, memory, cpu }, close };
  }

  #in(directory: string): KeptFiles {
    const host = this.#host;
    return host.keptFiles?.(directory) ?? { look: (name) => host.look(`${directory}/${name}`), close() {} };
  }
}
