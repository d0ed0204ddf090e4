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

/** The parent, in every hierarchy, of all cgroups of one fresh machine: the root of its cgroup namespace. */
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

  /** The files that a process id is written to, to put the process into the parent. */
  get procsFiles(): readonly string[] {
    return this.#hierarchies.map(({ directory }) => join(directory, this.#name, 'cgroup.procs'));
  }

  /** One line per hierarchy: type, mount options and directory. */
  get mountLines(): readonly string[] {
    return this.#hierarchies.map(({ type, options, directory }) => `${type} ${options} ${directory}`);
  }

  /** Removes it and answers the cgroups that were left below it, which the fresh machine should have removed. */
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

/** cgroup v1 lets no process into a cpuset that has no processors yet. */
function inheritCpuset(from: string, to: string): void {
  for (const file of ['cpuset.mems', 'cpuset.cpus']) {
    if (readdirSync(to).includes(file) && readdirSync(from).includes(file))
      writeFileSync(join(to, file), readFileSync(join(from, file)));
  }
}

/** Deepest first. */
function cgroupsBelow(directory: string): readonly string[] {
  const children = readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return children.flatMap(({ name }) => [...cgroupsBelow(join(directory, name)), join(directory, name)]);
}
