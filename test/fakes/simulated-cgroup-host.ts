import { dirname } from 'node:path';
import type { CgroupHost } from '../../src/lib/index.ts';
import { cgroupMagic } from '../../src/lib/index.ts';
import { filesOfV1, filesOfV2, interpret, type Refusal } from './simulated-cgroup-files.ts';

export interface SimulatedCgroupOptions {
  readonly mode: 'v1' | 'hybrid' | 'v2';
  /** The cgroup v1 mounts, each with its controllers, or the single v2 mount. */
  readonly mounts?: readonly string[];
  /**
   * Directories on the tmpfs of the v1 mounts that resemble a controller hierarchy but are none.
   */
  readonly unmounted?: readonly string[];
  readonly cpus?: string;
}

interface Directory {
  readonly kind: 'tmpfs' | 'v1' | 'v2';
  /**
   * The controllers available in a cgroup: in v1 those of the mount, in v2 those that the parent
   * cgroup enables.
   */
  controllers: readonly string[];
  readonly files: Map<string, string>;
  readonly pids: Set<number>;
  readonly children: Set<string>;
}

const base = '/sys/fs/cgroup';
const defaultV1 = ['cpu,cpuacct', 'cpuset', 'memory', 'pids', 'devices', 'freezer', 'blkio', 'name=systemd'];
const defaultV2 = ['cpuset', 'cpu', 'io', 'memory', 'pids'];

/**
 * The cgroups of a simulated machine. Operations fail as in the kernel, with the same errno. All
 * effects are immediate.
 */
export class SimulatedCgroupHost implements CgroupHost {
  readonly #directories = new Map<string, Directory>();
  readonly #unkillable = new Set<number>();
  readonly #mountinfo: string;

  constructor(options: SimulatedCgroupOptions) {
    const cpus = options.cpus ?? '0-3';
    this.#mountinfo =
      options.mode === 'v2'
        ? this.#mountV2(base, options.mounts ?? defaultV2, cpus)
        : this.#mountV1(options, cpus);
  }

  async mountinfo(): Promise<string> {
    return this.#mountinfo;
  }

  async fsType(path: string): Promise<number> {
    return cgroupMagic[this.#at(path, 'statfs').kind];
  }

  async read(path: string): Promise<string> {
    return this.#text(path);
  }

  readSync(path: string): string | undefined {
    try {
      return this.#text(path);
    } catch {
      return undefined;
    }
  }

  async write(path: string, value: string): Promise<void> {
    const directory = this.#at(dirname(path), 'open');
    const name = nameOf(path);
    if (name === 'cgroup.procs' && directory.kind !== 'tmpfs')
      return this.attach(Number(value), dirname(path));
    if (!directory.files.has(name)) throw refuse('ENOENT', 'open', path);
    if (name === 'cgroup.subtree_control') return this.#delegate(dirname(path), value);
    const parent = this.#directories.get(dirname(dirname(path)));
    const outcome = interpret(name, value, { own: directory.files, parent: parent?.files });
    if ('refused' in outcome) throw refuse(outcome.refused, 'write', path);
    directory.files.set(name, outcome.value);
  }

  async mkdir(path: string): Promise<void> {
    if (this.#directories.has(path)) throw refuse('EEXIST', 'mkdir', path);
    const parent = this.#at(dirname(path), 'mkdir');
    this.#directories.set(path, childOf(parent));
    parent.children.add(nameOf(path));
  }

  async rmdir(path: string): Promise<void> {
    const directory = this.#at(path, 'rmdir');
    const inUse = directory.children.size > 0 || directory.pids.size > 0;
    if (inUse) throw refuse(directory.kind === 'tmpfs' ? 'ENOTEMPTY' : 'EBUSY', 'rmdir', path);
    this.#directories.delete(path);
    this.#directories.get(dirname(path))?.children.delete(nameOf(path));
  }

  async subdirectories(path: string): Promise<readonly string[]> {
    return [...this.#at(path, 'scandir').children].toSorted();
  }

  kill(pid: number): void {
    if (this.#unkillable.has(pid)) return;
    let found = false;
    for (const { pids } of this.#directories.values()) found = pids.delete(pid) || found;
    if (!found) throw refuse('ESRCH', 'kill', String(pid));
  }

  /** Moves a process to another directory of the same hierarchy. */
  attach(pid: number, path: string): void {
    const directory = this.#at(path, 'open');
    const isEmpty = directory.files.get('cpuset.cpus') === '' && directory.kind === 'v1';
    if (isEmpty) throw refuse('ENOSPC', 'write', `${path}/cgroup.procs`);
    const root = this.#treeOf(path);
    for (const [other, { pids }] of this.#directories) if (this.#treeOf(other) === root) pids.delete(pid);
    directory.pids.add(pid);
  }

  /** Makes the process survive SIGKILL, like one in uninterruptible sleep. */
  makeUnkillable(pid: number): void {
    this.#unkillable.add(pid);
  }

  /** Sets the memory usage of a cgroup. */
  setMemoryUsage(path: string, bytes: number): void {
    const { files } = this.#at(path, 'open');
    files.set(files.has('memory.current') ? 'memory.current' : 'memory.usage_in_bytes', String(bytes));
  }

  /**
   * Returns all directories created below the mounts, sorted, including directories on the tmpfs,
   * which must never be created.
   */
  directories(): readonly string[] {
    return [...this.#directories.keys()].filter((path) => !this.#roots.has(path)).toSorted();
  }

  readonly #roots = new Set<string>();

  #mountV1(options: SimulatedCgroupOptions, cpus: string): string {
    this.#addRoot(base, { kind: 'tmpfs', controllers: [], files: new Map() });
    for (const name of options.unmounted ?? []) this.#addRoot(`${base}/${name}`, { kind: 'tmpfs' });
    const text = (options.mounts ?? defaultV1).map((mount, index) => {
      const path = `${base}/${mount.replace(/^name=/, '')}`;
      const controllers = mount.split(',').map((name) => name.replace(/^name=/, ''));
      const files = filesOfV1(controllers);
      if (files.has('cpuset.cpus')) files.set('cpuset.cpus', cpus).set('cpuset.mems', '0');
      this.#addRoot(path, { kind: 'v1', controllers, files });
      return `${32 + index} 31 0:${29 + index} / ${path} rw,relatime - cgroup cgroup rw,${mount}\n`;
    });
    const unified = options.mode === 'hybrid' ? this.#mountV2(`${base}/unified`, [], cpus) : '';
    return `31 23 0:28 / ${base} rw - tmpfs tmpfs rw,mode=755\n${text.join('')}${unified}`;
  }

  #text(path: string): string {
    const directory = this.#at(dirname(path), 'open');
    const name = nameOf(path);
    if (name === 'cgroup.procs' && directory.kind !== 'tmpfs') return lines([...directory.pids]);
    const text = directory.files.get(name);
    if (text === undefined) throw refuse('ENOENT', 'open', path);
    return `${text}\n`;
  }

  #mountV2(path: string, controllers: readonly string[], cpus: string): string {
    const files = filesOfV2(controllers);
    if (files.has('cpuset.cpus')) files.set('cpuset.cpus.effective', cpus);
    this.#addRoot(path, { kind: 'v2', controllers, files });
    return `60 23 0:60 / ${path} rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n`;
  }

  #addRoot(path: string, given: Pick<Directory, 'kind'> & Partial<Directory>): void {
    this.#roots.add(path);
    const empty = { controllers: [], files: new Map(), pids: new Set<number>(), children: new Set<string>() };
    this.#directories.set(path, { ...empty, ...given });
    this.#directories.get(dirname(path))?.children.add(nameOf(path));
  }

  #delegate(path: string, value: string): void {
    const directory = this.#at(path, 'open');
    const expected = value.split(' ').map((word) => word.replace(/^\+/, ''));
    if (!expected.every((name) => directory.controllers.includes(name)))
      throw refuse('ENOENT', 'write', path);
    // cgroup v2 allows processes in leaf cgroups only, except in the root.
    if (directory.pids.size > 0 && !this.#roots.has(path)) throw refuse('EBUSY', 'write', path);
    const before = words(directory.files.get('cgroup.subtree_control'));
    const enabled = [...new Set([...before, ...expected])];
    directory.files.set('cgroup.subtree_control', enabled.join(' '));
    for (const name of directory.children) this.#enable(`${path}/${name}`, enabled);
  }

  #enable(path: string, controllers: readonly string[]): void {
    const directory = this.#at(path, 'open');
    directory.controllers = controllers;
    for (const [name, text] of filesOfV2(controllers)) {
      if (name === 'cgroup.controllers' || !directory.files.has(name)) directory.files.set(name, text);
    }
  }

  #treeOf(path: string): string {
    return (
      [...this.#roots].filter((root) => path.startsWith(root)).toSorted((a, b) => b.length - a.length)[0] ??
      ''
    );
  }

  #at(path: string, call: string): Directory {
    const directory = this.#directories.get(path);
    if (directory === undefined) throw refuse('ENOENT', call, path);
    return directory;
  }
}

function childOf(parent: Directory): Directory {
  const controllers =
    parent.kind === 'v2' ? words(parent.files.get('cgroup.subtree_control')) : parent.controllers;
  const fresh = { pids: new Set<number>(), children: new Set<string>(), controllers };
  if (parent.kind === 'tmpfs') return { ...fresh, kind: 'tmpfs', files: new Map() };
  const files = parent.kind === 'v1' ? filesOfV1(controllers) : filesOfV2(controllers);
  return { ...fresh, kind: parent.kind, files };
}

function words(text: string | undefined): string[] {
  return (text ?? '').split(' ').filter((word) => word !== '');
}

function lines(pids: readonly number[]): string {
  return pids.map((pid) => `${pid}\n`).join('');
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

function refuse(code: Refusal | 'EEXIST' | 'ENOTEMPTY' | 'ESRCH', call: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${call} '${path}'`), { code, syscall: call, path });
}
