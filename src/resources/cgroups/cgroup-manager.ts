import type { MetricRegistry } from '../../lib/index.ts';
import {
  type CgroupHost,
  type CgroupLayout,
  type Clock,
  cgroupPids,
  cgroupRoots,
  defaultPeriodUs,
  describeError,
  errnoOf,
  KubelingError,
  killCgroup,
  minShares,
  removeCgroup,
  wholePercentQuotaUs,
} from '../../lib/index.ts';
import {
  type CgroupDriver,
  type CgroupName,
  cgroupPath,
  parseCgroupPath,
  sliceUnits,
} from './cgroup-name.ts';
import type { CgroupValues } from './cgroup-values.ts';
import { asKept, type CgroupLimits, readLimits } from './cgroup-values.ts';
import { asUpdateError, type CgroupTarget, makeDirectories, readWords, writeValues } from './write-values.ts';

export interface CgroupManagerDeps {
  readonly host: CgroupHost;
  readonly layout: CgroupLayout;
  readonly driver: CgroupDriver;
  /** Who makes cgroups where the driver is systemd. */
  readonly slices?: SliceManager | undefined;
  readonly clock: Clock;
  readonly observe?: CgroupObserver;
}

/** Trees a cgroup must be in to count as there; others such as devices may come and go with the runtime. */
const decisiveV1 = ['cpu', 'cpuacct', 'cpuset', 'memory', 'systemd', 'pids', 'hugetlb'];
const decisiveV2 = ['cpu', 'cpuset', 'memory', 'hugetlb', 'pids'];

/** Makes, changes and removes cgroups by name. Remembers nothing: what the machine shows is what is so. */
export class CgroupManager implements Disposable {
  readonly #deps: CgroupManagerDeps;

  constructor(deps: CgroupManagerDeps) {
    this.#deps = deps;
  }

  /** The same cgroups by their plain paths, whoever made them. */
  plain(): CgroupManager {
    return new CgroupManager({ ...this.#deps, driver: 'cgroupfs', slices: undefined });
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
   * not be set: a cgroup without one of its limits is there all the same. Throws CGROUP_CREATE or CGROUP_DRIVER.
   */
  async create(
    name: CgroupName,
    values: CgroupValues,
    signal: AbortSignal,
  ): Promise<readonly KubelingError[]> {
    using _timed = this.#timed('create');
    const slices = this.#slices();
    try {
      await slices?.start(this.#slice(name), signal);
      await makeDirectories(this.#place(name));
    } catch (error) {
      signal.throwIfAborted();
      const message = `Cannot make the cgroup ${this.path(name)}: ${describeError(error)}`;
      throw new KubelingError('CGROUP_CREATE', message, { cause: error });
    }
    return await this.#write(name, values, signal);
  }

  /** Sets the values of a cgroup that is there. Throws CGROUP_UPDATE naming every value that could not be set, or CGROUP_DRIVER. */
  async update(name: CgroupName, values: CgroupValues, signal: AbortSignal): Promise<void> {
    using _timed = this.#timed('update');
    const failures = await this.#write(name, values, signal);
    if (failures.length === 0) return;
    throw new KubelingError('CGROUP_UPDATE', failures.map(describeError).join('; '), { cause: failures[0] });
  }

  /** Leaves a cgroup that cannot go yet the least CPU there is. */
  async setMinimumCpu(name: CgroupName, signal: AbortSignal): Promise<void> {
    await this.update(name, { cpuShares: minShares }, signal);
  }

  /** Kills what is in the cgroup and below it, then removes it everywhere. Not there is done. Throws CGROUP_BUSY. */
  async destroy(name: CgroupName, signal: AbortSignal): Promise<void> {
    using _timed = this.#timed('destroy');
    const { host, clock } = this.#deps;
    const dirs = this.#directories(name);
    const left = await killCgroup(host, dirs, clock, signal);
    if (left.length > 0) {
      const message = `Cannot remove the cgroup ${this.path(name)} as its processes do not end: ${left.join(', ')}`;
      throw new KubelingError('CGROUP_BUSY', message, { details: { pids: left } });
    }
    await this.#stopSlice(name, signal);
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

  /** The limits as they will be read once they are set. */
  kept(limits: CgroupLimits): CgroupLimits {
    const { layout, driver } = this.#deps;
    return asKept(limits, layout.version, driver);
  }

  /** Every processor that cgroups can be given; undefined where the machine does not say. */
  async allCpus(): Promise<string | undefined> {
    const { host, layout } = this.#deps;
    if (layout.version === 1) return undefined;
    const text = await host.read(`${layout.root}/cpuset.cpus.effective`).catch(() => '');
    return text.trim() || undefined;
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

  /** Systemd is not asked any more; where it is all the same it is spoken to anew. */
  [Symbol.dispose](): void {
    this.#deps.slices?.[Symbol.dispose]();
  }

  #timed(operation: CgroupOperation): Disposable {
    const { clock, observe } = this.#deps;
    const startMs = clock.monotonicMs();
    return { [Symbol.dispose]: () => observe?.(operation, clock.monotonicMs() - startMs) };
  }

  #place(name: CgroupName): CgroupTarget {
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

  /** Both hear of it: systemd, which else would set what it thinks is right, and the kernel. Answers what failed. */
  async #write(
    name: CgroupName,
    values: CgroupValues,
    signal: AbortSignal,
  ): Promise<readonly KubelingError[]> {
    const slices = this.#slices();
    if (slices === undefined) return await writeValues(this.#place(name), values);
    const counted = inWholePercents(values);
    const failures: KubelingError[] = [];
    try {
      await slices.set(this.#slice(name), counted, signal);
    } catch (error) {
      signal.throwIfAborted();
      failures.push(asUpdateError(error));
    }
    return [...failures, ...(await writeValues(this.#place(name), counted))];
  }

  /** As long as the cgroup is there it is tried again; without one there is nothing that systemd could keep. */
  async #stopSlice(name: CgroupName, signal: AbortSignal): Promise<void> {
    try {
      await this.#slices()?.stop(this.#slice(name), signal);
    } catch (error) {
      signal.throwIfAborted();
      const { host } = this.#deps;
      const there = await Promise.all(this.#directories(name).map((dir) => isThere(host, dir)));
      if (!there.includes(true)) return;
      const message = `Cannot remove the cgroup ${this.path(name)}: ${describeError(error)}`;
      throw new KubelingError('CGROUP_BUSY', message, { cause: error });
    }
  }

  #slice(name: CgroupName): Slice {
    return { ...sliceUnits(name), version: this.#deps.layout.version };
  }

  /** Undefined where cgroups are ours to make. Throws CGROUP_DRIVER. */
  #slices(): SliceManager | undefined {
    const { driver, slices } = this.#deps;
    if (driver === 'systemd' && slices === undefined) {
      const message = `Cannot speak to systemd, to which the runtime, or else cgroupDriver, leaves cgroups, as there is none; ${withoutSystemd}`;
      throw new KubelingError('CGROUP_DRIVER', message);
    }
    return driver === 'systemd' ? slices : undefined;
  }
}

function inWholePercents(values: CgroupValues): CgroupValues {
  const { cpuQuotaUs, cpuPeriodUs = defaultPeriodUs } = values;
  if (cpuQuotaUs === undefined) return values;
  return { ...values, cpuQuotaUs: wholePercentQuotaUs(cpuQuotaUs, cpuPeriodUs) };
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

/** What to do about a driver that leaves cgroups to a systemd that is not there. */
export const withoutSystemd =
  'where it does not run set cgroupDriver: cgroupfs, and SystemdCgroup = false in containerd\'s configuration, or cgroup_manager = "cgroupfs" in CRI-O\'s';

/** A cgroup as systemd has it: a unit, within that of the cgroup above. */
export interface Slice {
  readonly unit: string;
  readonly parent: string;
  /** Of the cgroups on this machine. */
  readonly version: 1 | 2;
}

/**
 * Systemd, where cgroups are its own to make: what is written behind its back lasts only until it looks. Each call may be
 * repeated, ends within a bounded time, and rejects with SYSTEMD_UNIT. Once disposed of it can be used again.
 */
export interface SliceManager extends Disposable {
  /** There already is done. */
  start(slice: Slice, signal: AbortSignal): Promise<void>;
  /** As far as systemd knows such values. */
  set(slice: Slice, values: CgroupValues, signal: AbortSignal): Promise<void>;
  /** Not there is done. */
  stop(slice: Slice, signal: AbortSignal): Promise<void>;
}

export type CgroupOperation = 'create' | 'update' | 'destroy';

/** Told how long work on cgroups took, whether or not it succeeded. Never throws. */
export type CgroupObserver = (operation: CgroupOperation, durationMs: number) => void;

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Make one for a registry; the name is the one dashboards know. */
export function cgroupMetrics(registry: MetricRegistry): CgroupObserver {
  const duration = registry.histogram({
    name: 'kubelet_cgroup_manager_duration_seconds',
    help: 'How long work on cgroups took, by kind.',
    labels: ['operation_type'],
    buckets,
  });
  return (operation, durationMs) => duration.with({ operation_type: operation }).observe(durationMs / 1_000);
}
