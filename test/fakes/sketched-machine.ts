import type { MachineFiles } from '../../src/resources/index.ts';

/** Describes a machine with this topology of CPUs and memory, by the files of `/sys`. */
export interface SketchedMachine {
  readonly name: string;
  readonly sockets: number;
  readonly nodes: readonly SketchedNode[];
}

export interface SketchedNode {
  readonly id: number;
  readonly memory: number;
  readonly hugePages: readonly { readonly sizeKb: number; readonly pages: number }[] | null;
  readonly distances: readonly number[];
  readonly cores: readonly {
    readonly id: number;
    readonly socket: number;
    readonly threads: readonly number[];
    /** The last-level cache of the core; one for the whole NUMA node if undefined. */
    readonly uncore?: number;
  }[];
}

/** Returns the files of `/sys` that describe the topology. */
export function sysTree({ nodes }: SketchedMachine): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  const cpus = '/sys/devices/system/cpu';
  const online: number[] = [];
  for (const node of nodes) {
    const directory = `/sys/devices/system/node/node${node.id}`;
    files.set(`${directory}/meminfo`, `Node ${node.id} MemTotal:       ${node.memory / 1024} kB\n`);
    files.set(`${directory}/distance`, `${node.distances.join(' ')}\n`);
    for (const { sizeKb, pages } of node.hugePages ?? [])
      files.set(`${directory}/hugepages/hugepages-${sizeKb}kB/nr_hugepages`, `${pages}\n`);
    for (const { id, socket, threads, uncore } of node.cores) {
      const sharing = node.cores.filter((core) => core.uncore === uncore).flatMap((core) => core.threads);
      for (const cpu of threads) {
        online.push(cpu);
        files.set(`${directory}/cpu${cpu}/online`, '1\n');
        files.set(`${cpus}/cpu${cpu}/topology/core_id`, `${id}\n`);
        files.set(`${cpus}/cpu${cpu}/topology/physical_package_id`, `${socket}\n`);
        cache(files, `${cpus}/cpu${cpu}/cache/index0`, 1, cpu, threads);
        cache(files, `${cpus}/cpu${cpu}/cache/index3`, 3, uncore ?? node.id, sharing);
      }
    }
  }
  files.set(`${cpus}/online`, `${online.join(',')}\n`);
  return files;
}

function cache(
  files: Map<string, string>,
  directory: string,
  level: number,
  id: number,
  cpus: readonly number[],
): void {
  files.set(`${directory}/level`, `${level}\n`);
  files.set(`${directory}/id`, `${id}\n`);
  files.set(`${directory}/shared_cpu_list`, `${cpus.join(',')}\n`);
}

/** Reads files of the described `/sys`; fails as `node:fs` does. */
export function treeFiles(tree: ReadonlyMap<string, string>): MachineFiles {
  const missing = (path: string) => Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' });
  return {
    async read(path) {
      const text = tree.get(path);
      if (text === undefined) throw missing(path);
      return text;
    },
    async list(directory) {
      const below = [...tree.keys()].filter((path) => path.startsWith(`${directory}/`));
      if (below.length === 0) throw missing(directory);
      return [...new Set(below.map((path) => path.slice(directory.length + 1).split('/')[0] ?? ''))];
    },
  };
}
