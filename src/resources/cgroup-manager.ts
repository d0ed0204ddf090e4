import {
  type CgroupHost,
  type CgroupLayout,
  type Clock,
  cgroupPids,
  cgroupRoots,
  describeError,
  errnoOf,
  KubelingError,
  killCgroup,
  removeCgroup,
} from '../lib/index.ts';
import { minShares } from './cgroup-math.ts';
import { type CgroupDriver, type CgroupName, cgroupPath, parseCgroupPath } from './cgroup-name.ts';
import type { CgroupValues } from './cgroup-values.ts';
import { makeDirectories, readWords } from './make-directories.ts';
import type { CgroupObserver, CgroupOperation } from './metrics.ts';
import { type CgroupLimits, readLimits } from './read-values.ts';
import { type CgroupPlace, writeValues } from './write-values.ts';

export interface CgroupManagerDeps {
  readonly host: CgroupHost;
  readonly layout: CgroupLayout;
  readonly driver: CgroupDriver;
  readonly clock: Clock;
  readonly observe?: CgroupObserver;
}

/** Trees a cgroup must be in to count as there; others such as devices may come and go with the runtime. */
const decisiveV1 = ['cpu', 'cpuacct', 'cpuset', 'memory', 'systemd', 'pids', 'hugetlb'];
const decisiveV2 = ['cpu', 'cpuset', 'memory', 'hugetlb', 'pids'];

/** Makes, changes and removes cgroups by name. Remembers nothing: what the machine shows is what is so. */
export class CgroupManager {
  readonly #deps: CgroupManagerDeps;

  constructor(deps: CgroupManagerDeps) {
    this.#deps = deps;
  }

  get version(): 1 | 2 {
    return this.#deps.layout.version;
  }

  /** Where the cgroup lies below each tree of cgroups; a runtime is given this as the parent, whatever the driver. */
  path(name: CgroupName): string {
    return cgroupPath(name, this.#deps.driver);
  }

  parse(path: string): CgroupName {
    return parseCgroupPath(path, this.#deps.driver);
  }

  async exists(name: CgroupName): Promise<boolean> {
    return (await this.missing(name)).length === 0;
  }

  /** What keeps the cgroup from being there in full: directories, or controllers it should have. */
  async missing(name: CgroupName): Promise<readonly string[]> {
    const { host, layout } = this.#deps;
    if (layout.version === 2) return await this.#missingControllers(layout.root, name);
    const roots = decisiveV1.flatMap((controller) => layout.controllers.get(controller) ?? []);
    const dirs = [...new Set(roots)].map((root) => this.#below(root, name));
    const there = await Promise.all(dirs.map((dir) => isThere(host, dir)));
    return dirs.filter((_, index) => there[index] !== true);
  }

  /**
   * Makes the cgroup and those above it, where they are missing, then sets the values. Answers the values that could
   * not be set: a cgroup without one of its limits is there all the same. Throws CGROUP_CREATE.
   */
  async create(name: CgroupName, values: CgroupValues): Promise<readonly KubelingError[]> {
    this.#refuseSystemd('make');
    using _timed = this.#timed('create');
    try {
      await makeDirectories(this.#place(name));
    } catch (error) {
      const message = `Cannot make the cgroup ${this.path(name)}: ${describeError(error)}`;
      throw new KubelingError('CGROUP_CREATE', message, { cause: error });
    }
    return await writeValues(this.#place(name), values);
  }

  /** Sets the values of a cgroup that is there. Throws CGROUP_UPDATE naming every value that could not be set. */
  async update(name: CgroupName, values: CgroupValues): Promise<void> {
    this.#refuseSystemd('change');
    using _timed = this.#timed('update');
    const failures = await writeValues(this.#place(name), values);
    if (failures.length === 0) return;
    throw new KubelingError('CGROUP_UPDATE', failures.map(describeError).join('; '), { cause: failures[0] });
  }

  /** Leaves a cgroup that cannot go yet the least CPU there is. */
  async setMinimumCpu(name: CgroupName): Promise<void> {
    await this.update(name, { cpuShares: minShares });
  }

  /** Kills what is in the cgroup and below it, then removes it everywhere. Not there is done. Throws CGROUP_BUSY. */
  async destroy(name: CgroupName, signal: AbortSignal): Promise<void> {
    this.#refuseSystemd('remove');
    using _timed = this.#timed('destroy');
    const { host, clock } = this.#deps;
    const dirs = this.#directories(name);
    const left = await killCgroup(host, dirs, clock, signal);
    if (left.length > 0) {
      const message = `Cannot remove the cgroup ${this.path(name)} as its processes do not end: ${left.join(', ')}`;
      throw new KubelingError('CGROUP_BUSY', message, { details: { pids: left } });
    }
    const { problems } = await removeCgroup(host, dirs, clock, signal);
    if (problems.length > 0) throw new KubelingError('CGROUP_BUSY', problems.join('; '));
  }

  /** Every process in the cgroup and below it, in any tree. */
  async pids(name: CgroupName): Promise<readonly number[]> {
    return await cgroupPids(this.#deps.host, this.#directories(name));
  }

  /** The processes that are in the cgroup itself in every tree: what is elsewhere in one is somebody's already. */
  async members(name: CgroupName): Promise<readonly number[]> {
    const lists = await Promise.all(
      this.#directories(name).map((dir) => readWords(this.#deps.host, `${dir}/cgroup.procs`)),
    );
    const [first = [], ...others] = lists.map((words) => new Set(words));
    return [...first].filter((pid) => others.every((list) => list.has(pid))).map(Number);
  }

  /** Moves the process into the cgroup, in every tree. Throws CGROUP_UPDATE. */
  async attach(name: CgroupName, pid: number): Promise<void> {
    const { host } = this.#deps;
    try {
      for (const dir of this.#directories(name)) await host.write(`${dir}/cgroup.procs`, String(pid));
    } catch (error) {
      const message = `Cannot move the process ${pid} into the cgroup ${this.path(name)}: ${describeError(error)}`;
      throw new KubelingError('CGROUP_UPDATE', message, { cause: error });
    }
  }

  /** The cgroups directly below, in any tree: one that only a single controller still has counts. */
  async children(name: CgroupName): Promise<readonly CgroupName[]> {
    const found = new Set<string>();
    for (const dir of this.#directories(name)) {
      for (const child of await subdirectoriesIfThere(this.#deps.host, dir)) found.add(child);
    }
    const path = this.path(name);
    return [...found].toSorted().map((child) => this.parse(`${path === '/' ? '' : path}/${child}`));
  }

  /** What those in the cgroup are held to now. */
  async limits(name: CgroupName): Promise<CgroupLimits> {
    return await readLimits(this.#place(name));
  }

  async memoryUsage(name: CgroupName): Promise<number> {
    const { host, layout } = this.#deps;
    const [root, file] =
      layout.version === 2
        ? [layout.root, 'memory.current']
        : [layout.controllers.get('memory') ?? '', 'memory.usage_in_bytes'];
    return Number(await host.read(`${this.#below(root, name)}/${file}`));
  }

  #timed(operation: CgroupOperation): Disposable {
    const { clock, observe } = this.#deps;
    const startMs = clock.monotonicMs();
    return { [Symbol.dispose]: () => observe?.(operation, clock.monotonicMs() - startMs) };
  }

  #place(name: CgroupName): CgroupPlace {
    return { ...this.#deps, path: this.#below('', name) };
  }

  #directories(name: CgroupName): readonly string[] {
    return cgroupRoots(this.#deps.layout).map((root) => this.#below(root, name));
  }

  #below(root: string, name: CgroupName): string {
    return name.length === 0 ? root : `${root}${this.path(name)}`;
  }

  async #missingControllers(root: string, name: CgroupName): Promise<readonly string[]> {
    const { host } = this.#deps;
    const offered = await readWords(host, `${root}/cgroup.controllers`);
    const own = await readWords(host, `${this.#below(root, name)}/cgroup.controllers`).catch(() => undefined);
    if (own === undefined) return [this.#below(root, name)];
    return decisiveV2.filter((controller) => offered.includes(controller) && !own.includes(controller));
  }

  /** Under systemd cgroups are its own to make; writing behind its back lasts only until it looks. */
  #refuseSystemd(verb: string): void {
    if (this.#deps.driver !== 'systemd') return;
    throw new KubelingError(
      'CGROUP_DRIVER',
      `Cannot ${verb} cgroups as the driver must be cgroupfs: the runtime, or else cgroupDriver, asks for systemd, which kubeling can name cgroups for but not yet speak to; set cgroupDriver: cgroupfs, and SystemdCgroup = false in containerd's configuration, or cgroup_manager = "cgroupfs" in CRI-O's`,
    );
  }
}

async function isThere(host: CgroupHost, dir: string): Promise<boolean> {
  return await host.fsType(dir).then(
    () => true,
    () => false,
  );
}

async function subdirectoriesIfThere(host: CgroupHost, dir: string): Promise<readonly string[]> {
  try {
    return await host.subdirectories(dir);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw error;
  }
}
