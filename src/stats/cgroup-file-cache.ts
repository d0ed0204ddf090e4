import { join } from 'node:path';
import type { CgroupHost, CgroupLayout, DirectoryFiles } from '../lib/index.ts';
import type { CgroupFiles } from './cgroup/cgroup-usage.ts';
import type { PodSubject } from './pod-subjects.ts';

type Host = Pick<CgroupHost, 'readSync' | 'openFiles'>;

/** The processes of a cgroup. */
export interface ProcessesFound {
  readonly count: number;
  readonly first: string | undefined;
}

interface KeptSandbox {
  readonly processes: ProcessesFound;
  readonly network: DirectoryFiles;
  close(): void;
}

interface KeptCgroup {
  readonly path: string;
  readonly files: CgroupFiles;
  close(): void;
}

/** Files of the kernel on many cgroups and networks that are looked at again and again; they stay open between two looks. */
export class CgroupFileCache {
  readonly #host: Host;
  readonly #layout: CgroupLayout;
  readonly #cgroups = new SweptCache<KeptCgroup>();
  readonly #sandboxes = new SweptCache<KeptSandbox>();

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
    const text = network.read('dev');
    // The process has gone, and another may have its number by the next look.
    if (text === undefined) this.#sandboxes.drop(sandbox);
    return text;
  }

  /** For who asks for it in another look, as the sandbox is still there. */
  retainNetworkOf(sandbox: string): void {
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

  #in(directory: string): DirectoryFiles {
    const host = this.#host;
    return (
      host.openFiles?.(directory) ?? { read: (name) => host.readSync(`${directory}/${name}`), close() {} }
    );
  }
}

interface Closable {
  close(): void;
}

/** What stays open for as long as each look at all of it asks for it again. */
export class SweptCache<Value extends Closable> {
  readonly #all = new Map<string, { readonly value: Value; isUsed: boolean }>();

  get size(): number {
    return this.#all.size;
  }

  get(key: string): Value | undefined {
    const found = this.#all.get(key);
    if (found !== undefined) found.isUsed = true;
    return found?.value;
  }

  /** What was there before is closed. */
  set(key: string, value: Value): Value {
    this.drop(key);
    this.#all.set(key, { value, isUsed: true });
    return value;
  }

  drop(key: string): void {
    this.#all.get(key)?.value.close();
    this.#all.delete(key);
  }

  /** What nobody asked for since the last time is closed. */
  sweep(): void {
    for (const [key, each] of this.#all) {
      if (!each.isUsed) this.drop(key);
      each.isUsed = false;
    }
  }

  close(): void {
    for (const key of this.#all.keys()) this.drop(key);
  }
}

/**
 * Where the cgroups of containers are: the runtime names them after their ids, alone or with words of its own around.
 * What was found stays so for as long as the container runs.
 */
export class ContainerCgroups {
  readonly #host: Pick<CgroupHost, 'subdirectories'>;
  readonly #tree: string;
  #known: ReadonlyMap<string, string> = new Map();

  constructor(host: Pick<CgroupHost, 'subdirectories'>, layout: CgroupLayout) {
    this.#host = host;
    this.#tree = treeOf(layout);
  }

  get size(): number {
    return this.#known.size;
  }

  /** By id, below each tree. Others than these are forgotten. */
  async find(pods: readonly PodSubject[]): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, string>();
    for (const { cgroup, sandbox, containers } of pods) {
      if (cgroup === '') continue;
      let names: readonly string[] | undefined;
      for (const id of sandbox === undefined ? idsOf(containers) : [sandbox.id, ...idsOf(containers)]) {
        const known = this.#known.get(id);
        if (known === undefined) names ??= await this.#namesIn(cgroup);
        const name = known === undefined ? names?.find((each) => each.includes(id)) : undefined;
        const path = known ?? (name === undefined ? undefined : join(cgroup, name));
        if (path !== undefined) found.set(id, path);
      }
    }
    this.#known = found;
    return found;
  }

  async #namesIn(cgroup: string): Promise<readonly string[]> {
    return await this.#host.subdirectories(join(this.#tree, cgroup)).catch(() => []);
  }
}

function idsOf(containers: PodSubject['containers']): readonly string[] {
  return containers.map(({ id }) => id);
}

/** The tree all cgroups are in. */
export function treeOf(layout: CgroupLayout): string {
  return layout.version === 2 ? layout.root : (layout.controllers.get('memory') ?? '');
}
