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
  /** Creates the cgroups as systemd slices; required if the driver is systemd. */
  readonly slices?: SliceManager | undefined;
  readonly clock: Clock;
  readonly observe?: CgroupObserver;
}

/**
 * The controllers whose cgroup v1 trees must contain a cgroup so that it counts as existing. In the
 * trees of other controllers, such as devices, a cgroup may be missing until the runtime creates
 * it.
 */
const decisiveV1 = ['cpu', 'cpuacct', 'cpuset', 'memory', 'systemd', 'pids', 'hugetlb'];
const decisiveV2 = ['cpu', 'cpuset', 'memory', 'hugetlb', 'pids'];

/**
 * Creates, updates and removes cgroups by name. Stateless: it always reads the current state of the
 * machine.
 */
export class CgroupManager implements Disposable {
  readonly #deps: CgroupManagerDeps;

  constructor(deps: CgroupManagerDeps) {
    this.#deps = deps;
  }

  /**
   * Returns a manager that addresses cgroups by their plain paths, like the cgroupfs driver; it
   * also finds cgroups that systemd created.
   */
  plain(): CgroupManager {
    return new CgroupManager({ ...this.#deps, driver: 'cgroupfs', slices: undefined });
  }

  /**
   * Returns the path of the cgroup relative to the root of each controller tree; the CRI gets this
   * path as cgroup parent with either driver.
   */
  path(name: CgroupName): string {
    return cgroupPath(name, this.#deps.driver);
  }

  parse(path: string): CgroupName {
    return parseCgroupPath(path, this.#deps.driver);
  }

  async exists(name: CgroupName): Promise<boolean> {
    return (await this.missing(name)).length === 0;
  }

  /** Returns the directories and controllers that the cgroup lacks. */
  async missing(name: CgroupName): Promise<readonly string[]> {
    const { host, layout } = this.#deps;
    if (layout.version === 2) return await this.#missingControllers(layout.root, name);
    const roots = decisiveV1.flatMap((controller) => layout.controllers.get(controller) ?? []);
    const dirs = [...new Set(roots)].map((root) => this.#below(root, name));
    const there = await Promise.all(dirs.map((dir) => isThere(host, dir)));
    return dirs.filter((_, index) => there[index] !== true);
  }

  /**
   * Creates the cgroup and its missing parents, then sets the values. Values that could not be set
   * are returned and not thrown, because the cgroup exists also without them. Throws CGROUP_CREATE
   * or CGROUP_DRIVER.
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
      const message = `Cannot create the cgroup ${this.path(name)}: ${describeError(error)}`;
      throw new KubelingError('CGROUP_CREATE', message, { cause: error });
    }
    return await this.#write(name, values, signal);
  }

  /**
   * Updates an existing cgroup. Throws CGROUP_UPDATE that names every value that could not be set,
   * or CGROUP_DRIVER.
   */
  async update(name: CgroupName, values: CgroupValues, signal: AbortSignal): Promise<void> {
    using _timed = this.#timed('update');
    const failures = await this.#write(name, values, signal);
    if (failures.length === 0) return;
    throw new KubelingError('CGROUP_UPDATE', failures.map(describeError).join('; '), { cause: failures[0] });
  }

  /** Reduces a cgroup that cannot be removed yet to the minimum CPU shares. */
  async setMinimumCpu(name: CgroupName, signal: AbortSignal): Promise<void> {
    await this.update(name, { cpuShares: minShares }, signal);
  }

  /**
   * Kills all processes in the cgroup and below it, then removes it from all trees. A missing
   * cgroup counts as success. Throws CGROUP_BUSY.
   */
  async destroy(name: CgroupName, signal: AbortSignal): Promise<void> {
    using _timed = this.#timed('destroy');
    const { host, clock } = this.#deps;
    const dirs = this.#directories(name);
    const left = await killCgroup(host, dirs, clock, signal);
    if (left.length > 0) {
      const message = `Cannot remove the cgroup ${this.path(name)} as its processes do not exit: ${left.join(', ')}`;
      throw new KubelingError('CGROUP_BUSY', message, { details: { pids: left } });
    }
    await this.#stopSlice(name, signal);
    const { problems } = await removeCgroup(host, dirs, clock, signal);
    if (problems.length > 0) throw new KubelingError('CGROUP_BUSY', problems.join('; '));
  }

  /**
   * Returns the PIDs of all processes in the cgroup and its descendants, in any controller tree.
   */
  async pids(name: CgroupName): Promise<readonly number[]> {
    return await cgroupPids(this.#deps.host, this.#directories(name));
  }

  /**
   * Returns the processes that are directly in the cgroup in every tree. A process that is in
   * another cgroup in at least one tree is omitted.
   */
  async members(name: CgroupName): Promise<readonly number[]> {
    const lists = await Promise.all(
      this.#directories(name).map((dir) => readWords(this.#deps.host, `${dir}/cgroup.procs`)),
    );
    const [first = [], ...others] = lists.map((words) => new Set(words));
    return [...first].filter((pid) => others.every((list) => list.has(pid))).map(Number);
  }

  /** Moves the process into the cgroup in every tree. Throws CGROUP_UPDATE. */
  async attach(name: CgroupName, pid: number): Promise<void> {
    const { host } = this.#deps;
    try {
      for (const dir of this.#directories(name)) await host.write(`${dir}/cgroup.procs`, String(pid));
    } catch (error) {
      const message = `Cannot move the process ${pid} into the cgroup ${this.path(name)}: ${describeError(error)}`;
      throw new KubelingError('CGROUP_UPDATE', message, { cause: error });
    }
  }

  /**
   * Returns the child cgroups found in any controller tree, including cgroups that are left over in
   * only one tree.
   */
  async children(name: CgroupName): Promise<readonly CgroupName[]> {
    const found = new Set<string>();
    for (const dir of this.#directories(name)) {
      for (const child of await subdirectoriesIfThere(this.#deps.host, dir)) found.add(child);
    }
    const path = this.path(name);
    return [...found].toSorted().map((child) => this.parse(`${path === '/' ? '' : path}/${child}`));
  }

  /** Returns the limits as the kernel reports them after they were set. */
  kept(limits: CgroupLimits): CgroupLimits {
    const { layout, driver } = this.#deps;
    return asKept(limits, layout.version, driver);
  }

  /** Returns all CPUs that cgroups can use; undefined if the machine does not publish them. */
  async allCpus(): Promise<string | undefined> {
    const { host, layout } = this.#deps;
    if (layout.version === 1) return undefined;
    const text = await host.read(`${layout.root}/cpuset.cpus.effective`).catch(() => '');
    return text.trim() || undefined;
  }

  /** Reads the current limits of the cgroup. */
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

  /**
   * Disconnects from systemd; systemd units that still exist are handled when their cgroups are
   * created again.
   */
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

  /**
   * Sets the values in systemd, which would otherwise revert them, and in the kernel. Returns the
   * failures.
   */
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

  /**
   * Stops the slice before the cgroup is removed. A failure is thrown only if the cgroup still
   * exists; otherwise systemd has no unit of it.
   */
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

  /** Returns the systemd slices; undefined with the cgroupfs driver. Throws CGROUP_DRIVER. */
  #slices(): SliceManager | undefined {
    const { driver, slices } = this.#deps;
    if (driver === 'systemd' && slices === undefined) {
      const message = `Cannot connect to systemd, which the runtime or cgroupDriver requires for cgroups, as it does not run; ${withoutSystemd}`;
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

/** What the user can do if the systemd driver is configured on a machine without systemd. */
export const withoutSystemd =
  'where it does not run set cgroupDriver: cgroupfs, and SystemdCgroup = false in containerd\'s configuration, or cgroup_manager = "cgroupfs" in CRI-O\'s';

/** A cgroup as systemd slice unit inside the slice of its parent. */
export interface Slice {
  readonly unit: string;
  readonly parent: string;
  /** The cgroup version, which decides the names and units of the limits in systemd. */
  readonly version: 1 | 2;
}

/**
 * Manages cgroups through systemd, which would revert changes that bypass it. Each call is
 * idempotent, has a deadline, and rejects with SYSTEMD_UNIT. Can be used again after disposal.
 */
export interface SliceManager extends Disposable {
  /** Starts the slice unit; an existing unit counts as success. */
  start(slice: Slice, signal: AbortSignal): Promise<void>;
  /** Sets on the slice unit those of the values that systemd supports. */
  set(slice: Slice, values: CgroupValues, signal: AbortSignal): Promise<void>;
  /** Stops the slice unit; a missing unit counts as success. */
  stop(slice: Slice, signal: AbortSignal): Promise<void>;
}

export type CgroupOperation = 'create' | 'update' | 'destroy';

/** Observes the duration of cgroup operations, including failed ones. Never throws. */
export type CgroupObserver = (operation: CgroupOperation, durationMs: number) => void;

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Registers the metric of cgroup operations; call once per registry. */
export function cgroupMetrics(registry: MetricRegistry): CgroupObserver {
  const duration = registry.histogram({
    name: 'kubelet_cgroup_manager_duration_seconds',
    help: 'How long work on cgroups took, by kind.',
    labels: ['operation_type'],
    buckets,
  });
  return (operation, durationMs) => duration.with({ operation_type: operation }).observe(durationMs / 1_000);
}
