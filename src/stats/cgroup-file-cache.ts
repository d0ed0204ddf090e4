import { join } from 'node:path';
import type { CgroupHost, CgroupLayout, DirectoryFiles } from '../lib/index.ts';
import type { CgroupFiles } from './cgroup/cgroup-usage.ts';
import type { PodSubject } from './pod-subjects.ts';

type Host = Pick<CgroupHost, 'readSync' | 'openFiles'>;

/** Number of processes in a cgroup, and the PID of the first one. */
export interface ProcessesFound {
  readonly count: number;
  readonly first: string | undefined;
}

interface CachedSandbox {
  readonly processes: ProcessesFound;
  readonly network: DirectoryFiles;
  close(): void;
}

interface CachedCgroup {
  readonly path: string;
  readonly files: CgroupFiles;
  close(): void;
}

/** Keeps the kernel files of many cgroups and network namespaces open between periodic reads. */
export class CgroupFileCache {
  readonly #host: Host;
  readonly #layout: CgroupLayout;
  readonly #cgroups = new SweptCache<CachedCgroup>();
  readonly #sandboxes = new SweptCache<CachedSandbox>();

  constructor(host: Host, layout: CgroupLayout) {
    this.#host = host;
    this.#layout = layout;
  }

  get size(): number {
    return this.#cgroups.size + this.#sandboxes.size;
  }

  /**
   * Returns the open files of the cgroup at the path. The files are cached by the key; when the
   * path of a key changes, they are reopened.
   */
  of(key: string, path: string): CgroupFiles {
    const cached = this.#cgroups.get(key);
    return cached?.path === path ? cached.files : this.#cgroups.set(key, this.#opened(path)).files;
  }

  /**
   * Returns the pause process if the sandbox's cgroup had no other process when the sandbox's
   * network files were opened.
   */
  onlyProcessOf(sandbox: string): ProcessesFound | undefined {
    const processes = this.#sandboxes.get(sandbox)?.processes;
    return processes?.count === 1 ? processes : undefined;
  }

  /**
   * Returns the text of `net/dev` of the sandbox, read through its first process, because other
   * processes may not have joined the network namespace. An open file keeps the namespace alive, at
   * most until the next pass.
   */
  networkOf(sandbox: string, first: string, count: number): string | undefined {
    const { network } =
      this.#sandboxes.get(sandbox) ?? this.#sandboxes.set(sandbox, this.#entered({ count, first }));
    const text = network.read('dev');
    // The process has exited; its PID may be reused before the next pass, so the entry is dropped.
    if (text === undefined) this.#sandboxes.drop(sandbox);
    return text;
  }

  /** Keeps the sandbox's network files open without reading them in this pass. */
  retainNetworkOf(sandbox: string): void {
    this.#sandboxes.get(sandbox);
  }

  /** Closes all files that were not used since the last sweep. */
  sweep(): void {
    this.#cgroups.sweep();
    this.#sandboxes.sweep();
  }

  /** Closes all files; they are opened again when needed. */
  close(): void {
    this.#cgroups.close();
    this.#sandboxes.close();
  }

  #entered(processes: ProcessesFound): CachedSandbox {
    const network = this.#in(`/proc/${processes.first}/net`);
    return { processes, network, close: () => network.close() };
  }

  /** Opens the files of a cgroup; with cgroups v1, CPU and memory are in different trees. */
  #opened(path: string): CachedCgroup {
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

/** A cache in which a sweep closes all entries that were not used since the previous sweep. */
class SweptCache<Value extends Closable> {
  readonly #all = new Map<string, { readonly value: Value; isUsed: boolean }>();

  get size(): number {
    return this.#all.size;
  }

  get(key: string): Value | undefined {
    const found = this.#all.get(key);
    if (found !== undefined) found.isUsed = true;
    return found?.value;
  }

  /** Stores a value and closes the previous value of the key. */
  set(key: string, value: Value): Value {
    this.drop(key);
    this.#all.set(key, { value, isUsed: true });
    return value;
  }

  drop(key: string): void {
    this.#all.get(key)?.value.close();
    this.#all.delete(key);
  }

  /** Closes all values that were not used since the last sweep. */
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
 * Finds the cgroups of containers: runtimes name them after the container id, with an optional
 * prefix and suffix. A result is cached while the container runs.
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

  /**
   * Returns the cgroup paths by container id, relative to each tree. Removes the containers of
   * all pods except `pods` from the cache.
   */
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

/** Returns the cgroup tree that contains all cgroups. */
export function treeOf(layout: CgroupLayout): string {
  return layout.version === 2 ? layout.root : (layout.controllers.get('memory') ?? '');
}
