import { createHash } from 'node:crypto';
import { readFile, realpath } from 'node:fs/promises';
import { dirname } from 'node:path';
import {
  absoluteArgument,
  type Clock,
  describeError,
  KeyedMutex,
  type Mount,
  mountOf,
  readFileIfExists,
  readMountTable,
  runCommand,
} from '../../lib/index.ts';
import { commandFailure } from '../manager/mount-options.ts';
import type { DirectoryQuotas } from './empty-dir-quotas.ts';

export interface HostDirectoryQuotasDeps {
  readonly clock: Clock;
  /** PATH in which the programs are searched. */
  readonly path?: string | undefined;
  readonly mounts?: () => Promise<readonly Mount[]>;
  /**
   * Directory of the files `projects` and `projid`, in which administrators register project ids.
   */
  readonly registryDir?: string;
}

const quotaOptions: ReadonlySet<string> = new Set(['prjquota', 'pquota']);
const deadlineMs = 30_000;
const blockBytes = 1024n;

class Unavailable extends Error {}

/**
 * Project quotas with the programs of this machine: `chattr` and `lsattr` of e2fsprogs, `setquota`
 * and `repquota` of quota. The file system stores the project of a directory, so nothing is lost on
 * a restart.
 */
export class HostDirectoryQuotas implements DirectoryQuotas {
  readonly #deps: HostDirectoryQuotasDeps;
  /** Serializes reading the used project ids with assigning one of the free ones. */
  readonly #lock = new KeyedMutex<'projects'>();

  constructor(deps: HostDirectoryQuotasDeps) {
    this.#deps = deps;
  }

  problemIn(directory: string, signal: AbortSignal): Promise<string | undefined> {
    return this.#answering(async () => {
      await this.#reported(await this.#fileSystem(directory), signal);
    }, signal);
  }

  limit(directory: string, bytes: bigint, signal: AbortSignal): Promise<string | undefined> {
    return this.#answering(async () => {
      const fileSystem = await this.#fileSystem(directory);
      using _held = await this.#lock.acquire('projects', signal);
      const project = await this.#projectFor(directory, fileSystem, signal);
      const blocks = (bytes + blockBytes - 1n) / blockBytes;
      await this.#setLimit(project, blocks, fileSystem, signal);
    }, signal);
  }

  release(directories: readonly string[], signal: AbortSignal): Promise<string | undefined> {
    return this.#answering(async () => {
      const [first] = directories;
      if (first === undefined) return;
      const fileSystem = await this.#fileSystem(first).catch(unlessUnavailable);
      if (fileSystem === undefined) return;
      const projects = await this.#listed(directories, signal);
      for (const project of new Set(projects.values()))
        if (isOurProject(project)) await this.#setLimit(project, 0n, fileSystem, signal);
    }, signal);
  }

  /** Returns the project id of the directory: the one of an earlier attempt, or a free one. */
  async #projectFor(directory: string, fileSystem: string, signal: AbortSignal): Promise<number> {
    const above = dirname(directory);
    const found = await this.#listed([above, directory], signal);
    const [outer, own] = [found.get(above), found.get(directory)];
    if (outer === undefined || own === undefined)
      throw new Unavailable(`lsattr does not tell the project of ${directory}`);
    // A directory in another project is not limited, because the accounting of that project must
    // not change.
    if (outer !== 0) throw new Unavailable(`${above} belongs to the project ${outer} of somebody else`);
    if (own !== 0) return own;
    const used = new Set([
      ...(await this.#registeredProjects()),
      ...(await this.#reported(fileSystem, signal)),
    ]);
    const project = freeProject(directory, used);
    await this.#run(
      'chattr',
      ['-p', String(project), '+P', '--', absoluteArgument('chattr', directory)],
      signal,
    );
    return project;
  }

  async #listed(directories: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
    const args = ['-p', '-d', '--', ...directories.map((directory) => absoluteArgument('lsattr', directory))];
    // lsattr may fail for one directory and still print the project ids of the others, so its
    // output is used even after a failure.
    const { stdout } = await this.#command('lsattr', args, signal);
    return listedProjects(stdout);
  }

  async #registeredProjects(): Promise<readonly number[]> {
    const { registryDir = '/etc' } = this.#deps;
    const [projects, names] = await Promise.all(
      ['projects', 'projid'].map(async (name) => (await readFileIfExists(`${registryDir}/${name}`)) ?? ''),
    );
    return [...projectsOf(projects ?? ''), ...namedProjectsOf(names ?? '')];
  }

  async #reported(fileSystem: string, signal: AbortSignal): Promise<readonly number[]> {
    return reportedProjects(await this.#run('repquota', ['-P', '-n', '--', fileSystem], signal));
  }

  /** Sets the limit of a project in blocks; 0 means no limit. */
  async #setLimit(project: number, blocks: bigint, fileSystem: string, signal: AbortSignal): Promise<void> {
    const limits = ['0', String(blocks), '0', '0'];
    await this.#run('setquota', ['-P', '--', String(project), ...limits, fileSystem], signal);
  }

  /**
   * Returns the mount point of the file system's root, because the programs do not accept bind
   * mounts.
   */
  async #fileSystem(directory: string): Promise<string> {
    const { mounts = () => readMountTable((path) => readFile(path, 'utf8')) } = this.#deps;
    const [place, table] = await Promise.all([realpath(directory), mounts()]);
    const holder = mountOf(place, table);
    if (holder === undefined) throw new Unavailable(`nobody knows what ${place} is mounted from`);
    const { device, fsType, mountPoint, superOptions } = holder;
    if (!superOptions.some((option) => quotaOptions.has(option)))
      throw new Unavailable(`the file system at ${mountPoint} (${fsType}) is not mounted with prjquota`);
    const fileSystem = table.find((mount) => mount.device === device && mount.root === '/');
    return (fileSystem ?? holder).mountPoint;
  }

  async #run(file: string, args: readonly string[], signal: AbortSignal): Promise<string> {
    const result = await this.#command(file, args, signal);
    const failure = commandFailure(result);
    if (failure !== undefined) throw new Unavailable(`${file} ${args.join(' ')} failed: ${failure}`);
    return result.stdout;
  }

  async #command(file: string, args: readonly string[], signal: AbortSignal) {
    const { clock, path = process.env['PATH'] } = this.#deps;
    // The locale is fixed, because the output of programs is parsed.
    const env = { PATH: path, LC_ALL: 'C' };
    return await runCommand({ file, args, env, clock, deadlineMs }, signal);
  }

  async #answering(act: () => Promise<void>, signal: AbortSignal): Promise<string | undefined> {
    try {
      await act();
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      return describeError(error);
    }
  }
}

function unlessUnavailable(error: unknown): undefined {
  if (!(error instanceof Unavailable)) throw error;
}

/**
 * First project id of kubeling: far from ids assigned manually and from those of the Go kubelet,
 * which counts up from 2^20.
 */
export const firstProject = 0x4000_0000;
export const lastProject = 0x7fff_ffff;

export function isOurProject(id: number): boolean {
  return id >= firstProject && id <= lastProject;
}

/** Returns an unused project id, normally the same for each call with the same directory. */
export function freeProject(directory: string, used: ReadonlySet<number>): number {
  const count = lastProject - firstProject + 1;
  const preferred = createHash('sha256').update(directory).digest().readUInt32BE() % count;
  for (let step = 0; step <= used.size; step++) {
    const id = firstProject + ((preferred + step) % count);
    if (!used.has(id)) return id;
  }
  throw new Error('all project ids are in use');
}

/** Parses the project ids of /etc/projects, whose lines are `number:directory`. */
export function projectsOf(text: string): readonly number[] {
  return numbersIn(text, /^\s*(\d+):/);
}

/** Parses the project ids of /etc/projid, whose lines are `name:number`. */
export function namedProjectsOf(text: string): readonly number[] {
  return numbersIn(text, /^[^#:]+:(\d+)\s*$/);
}

/**
 * Parses the project ids in the output of repquota(8), which lists projects with a file or a limit.
 */
export function reportedProjects(text: string): readonly number[] {
  return numbersIn(text, /^#(\d+)\s+[-+]{2}\s/);
}

/** Parses the project id of each directory in the output of lsattr(1); 0 means no project. */
export function listedProjects(text: string): ReadonlyMap<string, number> {
  const found = text.split('\n').flatMap((line) => {
    const [, id, directory] = /^\s*(\d+)\s+\S+\s(.*)$/.exec(line) ?? [];
    return directory === undefined ? [] : [[directory, Number(id)] as const];
  });
  return new Map(found);
}

function numbersIn(text: string, line: RegExp): readonly number[] {
  return text.split('\n').flatMap((one) => {
    const [, number] = line.exec(one) ?? [];
    return number === undefined ? [] : [Number(number)];
  });
}
