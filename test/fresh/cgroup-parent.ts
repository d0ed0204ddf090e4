import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A cgroup hierarchy of this machine, as /proc/self/mountinfo lists it. */
interface Hierarchy {
  readonly type: 'cgroup' | 'cgroup2';
  readonly options: string;
  readonly directory: string;
}

const mountOptions = new Set([
  'rw',
  'ro',
  'relatime',
  'nosuid',
  'nodev',
  'noexec',
  'nsdelegate',
  'memory_recursiveprot',
]);

/**
 * The parent cgroup of one fresh machine: one cgroup in each cgroup hierarchy, which contains all
 * cgroups of the machine and is the root of its cgroup namespace.
 */
export class CgroupParent {
  readonly #hierarchies: readonly Hierarchy[];
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
    this.#hierarchies = readHierarchies(readFileSync('/proc/self/mountinfo', 'utf8'));
    for (const { directory } of this.#hierarchies) {
      mkdirSync(join(directory, name));
      inheritCpuset(directory, join(directory, name));
    }
  }

  /**
   * The `cgroup.procs` files to which a process ID is written to move the process into the cgroup.
   */
  get procsFiles(): readonly string[] {
    return this.#hierarchies.map(({ directory }) => join(directory, this.#name, 'cgroup.procs'));
  }

  /** Returns one line per hierarchy: type, mount options and directory. */
  get mountLines(): readonly string[] {
    return this.#hierarchies.map(({ type, options, directory }) => `${type} ${options} ${directory}`);
  }

  /**
   * Removes the cgroup of the fresh machine, and returns the cgroups below it that its processes
   * have left behind.
   */
  remove(): readonly string[] {
    return this.#hierarchies.flatMap(({ directory }) => {
      const below = cgroupsBelow(join(directory, this.#name));
      for (const path of [...below, join(directory, this.#name)]) rmdirSync(path);
      return below;
    });
  }
}

function readHierarchies(mountinfo: string): readonly Hierarchy[] {
  const rows = mountinfo
    .split('\n')
    .map((line) => /^\S+ \S+ \S+ \S+ (\S+) .* - (cgroup2?) \S+ (\S+)$/.exec(line));
  const found = rows.flatMap((row) => {
    const [, directory = '', type, options = ''] = row ?? [];
    if (type !== 'cgroup' && type !== 'cgroup2') return [];
    const controllers = options.split(',').filter((option) => !mountOptions.has(option));
    return [{ type, directory, options: controllers.join(',') || 'rw' } as const];
  });
  return found.filter(
    ({ directory }, index) => found.findIndex((row) => row.directory === directory) === index,
  );
}

/** In cgroup v1 a cpuset without CPUs accepts no processes. */
function inheritCpuset(from: string, to: string): void {
  for (const file of ['cpuset.mems', 'cpuset.cpus']) {
    if (readdirSync(to).includes(file) && readdirSync(from).includes(file))
      writeFileSync(join(to, file), readFileSync(join(from, file)));
  }
}

/** Lists the deepest cgroups first. */
function cgroupsBelow(directory: string): readonly string[] {
  const children = readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return children.flatMap(({ name }) => [...cgroupsBelow(join(directory, name)), join(directory, name)]);
}
