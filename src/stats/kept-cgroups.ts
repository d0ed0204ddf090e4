import type { CgroupHost, CgroupLayout, KeptFiles } from '../lib/index.ts';
import type { CgroupFiles } from './cgroup/cgroup-usage.ts';
import { treeOf } from './container-cgroups.ts';
import { InUse } from './in-use.ts';

type Host = Pick<CgroupHost, 'look' | 'keptFiles'>;

/** The processes of a cgroup. */
export interface ProcessesFound {
  readonly count: number;
  readonly first: string | undefined;
}

interface KeptSandbox {
  readonly processes: ProcessesFound;
  readonly network: KeptFiles;
  close(): void;
}

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
  readonly #sandboxes = new InUse<KeptSandbox>();

  constructor(host: Host, layout: CgroupLayout) {
    this.#host = host;
    this.#layout = layout;
  }

  get size(): number {
    return this.#cgroups.size + this.#sandboxes.size;
  }

  /** Of the cgroup somebody has now, at its path below each tree. */
  of(whose: string, path: string): CgroupFiles {
    const kept = this.#cgroups.get(whose);
    return kept?.path === path ? kept.files : this.#cgroups.set(whose, this.#opened(path)).files;
  }

  /** As found when its network was opened: the only process of a sandbox does nothing but to be there. */
  onlyProcessOf(sandbox: string): ProcessesFound | undefined {
    const processes = this.#sandboxes.get(sandbox)?.processes;
    return processes?.count === 1 ? processes : undefined;
  }

  /**
   * What has gone over the interfaces of a sandbox, as `net/dev` of its own first process says it: others may not have
   * come there yet. A network lives on for as long as this is open: not beyond the next look at the others.
   */
  networkOf(sandbox: string, first: string, count: number): string | undefined {
    const { network } =
      this.#sandboxes.get(sandbox) ?? this.#sandboxes.set(sandbox, this.#entered({ count, first }));
    const text = network.look('dev');
    // The process has gone, and another may have its number by the next look.
    if (text === undefined) this.#sandboxes.drop(sandbox);
    return text;
  }

  /** For who asks for it in another look, as the sandbox is still there. */
  keepNetworkOf(sandbox: string): void {
    this.#sandboxes.get(sandbox);
  }

  /** Those nobody asked for since the last time are closed. */
  sweep(): void {
    this.#cgroups.sweep();
    this.#sandboxes.sweep();
  }

  /** All of them; they are opened anew when they are looked at again. */
  close(): void {
    this.#cgroups.close();
    this.#sandboxes.close();
  }

  #entered(processes: ProcessesFound): KeptSandbox {
    const network = this.#in(`/proc/${processes.first}/net`);
    return { processes, network, close: () => network.close() };
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
