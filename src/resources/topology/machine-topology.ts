import { KubelingError } from '../../lib/index.ts';
import { parseCpuSet } from '../cpu/cpu-set.ts';
import type { MachineFiles } from '../machine/machine-facts.ts';

/**
 * The location of a CPU. The ID of a core is the number of its first CPU, so it is unique on the
 * machine.
 */
export interface CpuLocation {
  readonly numaNode: number;
  readonly socket: number;
  readonly core: number;
  /**
   * The ID of the uncore cache, or the ID of the socket if the NUMA node has only one uncore cache.
   */
  readonly uncoreCache: number;
}

export interface NumaNode {
  readonly id: number;
  /** The memory of the NUMA node; 0 if unknown. */
  readonly memoryBytes: number;
  readonly hugePages: readonly { readonly pageBytes: number; readonly count: number }[];
  /** The distances to all NUMA nodes by their number; empty if unknown. */
  readonly distances: ReadonlyMap<number, number>;
}

export interface MachineTopology {
  /** The NUMA nodes of the machine, ascending by number. */
  readonly numaNodes: readonly NumaNode[];
  /** The numbers of the online CPUs, ascending. */
  readonly cpus: ReadonlyMap<number, CpuLocation>;
}

const nodesDir = '/sys/devices/system/node';
const cpusDir = '/sys/devices/system/cpu';

/** Reads the topology from sysfs. Throws MACHINE_TOPOLOGY if it contains no CPU. */
export async function readMachineTopology(files: MachineFiles): Promise<MachineTopology> {
  const reader = new TopologyReader(files);
  const ids = numbered(await reader.list(nodesDir), 'node');
  const nodes = ids.length > 0 ? await reader.numaNodes(ids) : await reader.socketsAsNodes();
  const cpus = new Map(nodes.flatMap(({ cpus }) => cpus).toSorted(([one], [other]) => one - other));
  if (cpus.size === 0) {
    const message = `Cannot read the CPU topology as ${cpusDir} contains no online CPU`;
    throw new KubelingError('MACHINE_TOPOLOGY', message);
  }
  return { numaNodes: nodes.map(({ node }) => node), cpus };
}

interface ReadNode {
  readonly node: NumaNode;
  readonly cpus: readonly (readonly [number, CpuLocation])[];
}

interface Thread {
  readonly cpu: number;
  readonly socket: number;
  /** The core ID of the kernel is unique only within its socket. */
  readonly coreId: number;
}

class TopologyReader {
  readonly #files: MachineFiles;
  #online: Promise<ReadonlySet<number> | undefined> | undefined;

  constructor(files: MachineFiles) {
    this.#files = files;
  }

  async list(directory: string): Promise<readonly string[]> {
    return await this.#files.list(directory).catch(() => []);
  }

  async numaNodes(ids: readonly number[]): Promise<readonly ReadNode[]> {
    return await Promise.all(ids.map((id) => this.#numaNode(id, ids)));
  }

  /** Without NUMA support in the kernel, each socket counts as NUMA node. */
  async socketsAsNodes(): Promise<readonly ReadNode[]> {
    const threads = await this.#threads(numbered(await this.list(cpusDir), 'cpu'));
    const sockets = Map.groupBy(threads, ({ socket }) => socket);
    return await Promise.all(
      [...sockets.keys()]
        .toSorted((one, other) => one - other)
        .map(async (id) => ({
          node: { id, memoryBytes: 0, hugePages: [], distances: new Map() },
          cpus: await this.#places(id, sockets.get(id) ?? []),
        })),
    );
  }

  async #numaNode(id: number, ids: readonly number[]): Promise<ReadNode> {
    const directory = `${nodesDir}/node${id}`;
    const [threads, memory, distances, hugePages] = await Promise.all([
      this.list(directory).then((names) => this.#threads(numbered(names, 'cpu'))),
      this.#text(`${directory}/meminfo`),
      this.#text(`${directory}/distance`),
      this.#hugePages(`${directory}/hugepages`),
    ]);
    const kib = Number(/MemTotal:\s*(\d+) kB/.exec(memory)?.[1] ?? 0);
    const far = distances.split(/\s+/).filter((part) => part !== '');
    return {
      node: {
        id,
        memoryBytes: kib * 1024,
        hugePages,
        // The kernel lists one distance per online NUMA node, in order.
        distances: new Map(far.flatMap((part, place) => idAt(ids, place).map((to) => [to, Number(part)]))),
      },
      cpus: await this.#places(id, threads),
    };
  }

  async #hugePages(directory: string) {
    const kinds = (await this.list(directory)).toSorted().flatMap((name) => {
      const kib = /^hugepages-(\d+)kB$/.exec(name)?.[1];
      return kib === undefined ? [] : [{ name, pageBytes: Number(kib) * 1024 }];
    });
    return await Promise.all(
      kinds.map(async ({ name, pageBytes }) => {
        const count = Number.parseInt(await this.#text(`${directory}/${name}/nr_hugepages`), 10) || 0;
        return { pageBytes, count };
      }),
    );
  }

  /** Returns the locations of the online CPUs that have a topology. */
  async #threads(cpus: readonly number[]): Promise<readonly Thread[]> {
    this.#online ??= this.#text(`${cpusDir}/online`).then((text) =>
      text.trim() === '' ? undefined : parseCpuSet(text),
    );
    const online = await this.#online;
    const there = cpus.filter((cpu) => online?.has(cpu) ?? true);
    const found = await Promise.all(there.map((cpu) => this.#thread(cpu)));
    return found.filter((thread) => thread !== undefined);
  }

  async #thread(cpu: number): Promise<Thread | undefined> {
    const [core, socket] = await Promise.all([
      this.#text(`${cpusDir}/cpu${cpu}/topology/core_id`),
      this.#text(`${cpusDir}/cpu${cpu}/topology/physical_package_id`),
    ]);
    const thread = { cpu, socket: Number.parseInt(socket, 10), coreId: Number.parseInt(core, 10) };
    return Number.isNaN(thread.socket) || Number.isNaN(thread.coreId) ? undefined : thread;
  }

  async #places(numaNode: number, threads: readonly Thread[]): Promise<ReadNode['cpus']> {
    const cores = Map.groupBy(threads, ({ socket, coreId }) => `${socket}/${coreId}`);
    const placed = await Promise.all(
      [...cores.values()].map(async (siblings) => {
        const { socket } = siblings[0] ?? { socket: 0 };
        const cpus = siblings.map(({ cpu }) => cpu);
        const core = Math.min(...cpus);
        const uncoreCache = (await this.#splitCache(core, threads.length)) ?? socket;
        return cpus.map((cpu) => [cpu, { numaNode, socket, core, uncoreCache }] as const);
      }),
    );
    return placed.flat();
  }

  /** Returns the ID of the last-level cache; undefined if all CPUs of the NUMA node share it. */
  async #splitCache(cpu: number, processors: number): Promise<number | undefined> {
    const directory = `${cpusDir}/cpu${cpu}/cache`;
    const names = (await this.list(directory)).filter((name) => name.startsWith('index')).toSorted();
    for (const name of names) {
      const [level, id, shared] = await Promise.all(
        ['level', 'id', 'shared_cpu_list'].map((file) => this.#text(`${directory}/${name}/${file}`)),
      );
      const cache = Number.parseInt(id ?? '', 10);
      const isSplit = parseCpuSet(shared ?? '').size !== processors;
      if (Number.parseInt(level ?? '', 10) > 2 && !Number.isNaN(cache) && isSplit) return cache;
    }
    return undefined;
  }

  async #text(path: string): Promise<string> {
    return await this.#files.read(path).catch(() => '');
  }
}

function idAt(ids: readonly number[], place: number): readonly number[] {
  const id = ids[place];
  return id === undefined ? [] : [id];
}

/** Returns the numbers in names such as cpu0 or node1, ascending. */
function numbered(names: readonly string[], prefix: 'node' | 'cpu'): readonly number[] {
  return names
    .flatMap((name) => (name.startsWith(prefix) ? name.slice(prefix.length) : []))
    .filter((number) => /^\d+$/.test(number))
    .map(Number)
    .toSorted((one, other) => one - other);
}
