import { posix } from 'node:path';
import type { Volume } from '../kinds/index.ts';
import { describeError, KubelingError } from '../lib/index.ts';
import type { Pod, PodJournal } from '../pods/index.ts';
import type { FileKind, RuntimeFiles } from '../runtime/index.ts';
import type { MemoryEmptyDirs, PayloadVolumes } from '../volumes/index.ts';
import type { PodDirectories } from './pod-files.ts';

type PathVolume = { readonly kind: 'path'; readonly hostPath: string; readonly readOnly?: boolean };

const emptyDirMode = 0o777;
const setGroupBit = 0o2000;
const hostDirectoryMode = 0o755;
const hostFileMode = 0o644;

interface HostPathRule {
  readonly kind: FileKind;
  /** As the message calls it. */
  readonly called: string;
}

const directory: HostPathRule = { kind: 'directory', called: 'directory' };
const file: HostPathRule = { kind: 'file', called: 'file' };

/** What must be at the path of the host, by the type the volume gives. */
const hostPathRules: ReadonlyMap<string, HostPathRule> = new Map([
  ['DirectoryOrCreate', directory],
  ['Directory', directory],
  ['FileOrCreate', file],
  ['File', file],
  ['Socket', { kind: 'socket', called: 'socket file' }],
  ['CharDevice', { kind: 'character-device', called: 'character device' }],
  ['BlockDevice', { kind: 'block-device', called: 'block device' }],
]);

/** Volumes that are filled from here, such as config maps. */
export type FilledVolumes = Pick<PayloadVolumes, 'of' | 'make' | 'remove'>;

/** Empty directories that lie in memory. */
export type DirectoriesInMemory = Pick<MemoryEmptyDirs, 'make' | 'remove'>;

/** The volumes of pods: paths of the host, empty directories on the disk of the pods or in memory, and those filled from here. */
export class PlainVolumes {
  readonly #directories: PodDirectories;
  readonly #files: RuntimeFiles;
  readonly #journal: Pick<PodJournal, 'event'>;
  readonly #filled: FilledVolumes | undefined;
  readonly #inMemory: DirectoriesInMemory | undefined;

  constructor(
    directories: PodDirectories,
    files: RuntimeFiles,
    journal: Pick<PodJournal, 'event'>,
    filled?: FilledVolumes,
    inMemory?: DirectoriesInMemory,
  ) {
    this.#directories = directories;
    this.#files = files;
    this.#journal = journal;
    this.#filled = filled;
    this.#inMemory = inMemory;
  }

  /** Where each is to be found; a volume of another kind is missing from the answer. */
  of(pod: Pod): ReadonlyMap<string, PathVolume> {
    const found = new Map<string, PathVolume>(this.#filled?.of(pod));
    for (const { name, hostPath, emptyDir } of pod.spec.volumes ?? []) {
      if (hostPath !== undefined) found.set(name, { kind: 'path', hostPath: hostPath.path });
      else if (emptyDir !== undefined) found.set(name, { kind: 'path', hostPath: this.#emptyDir(pod, name) });
    }
    return found;
  }

  /** Rejects with VOLUME_UNUSABLE, after an event for each volume that cannot be had: without all the pod must not start. */
  async make(pod: Pod, signal: AbortSignal): Promise<void> {
    const problems: string[] = [];
    const filled = this.#filled?.of(pod);
    for (const volume of pod.spec.volumes ?? []) {
      if (filled?.has(volume.name)) continue;
      const problem = await this.#makeOne(pod, volume, signal).catch(describeError);
      if (problem === undefined) continue;
      signal.throwIfAborted();
      problems.push(this.#tell(pod, volume.name, problem));
    }
    problems.push(...(await this.#fill(pod, signal)));
    if (problems.length > 0) throw new KubelingError('VOLUME_UNUSABLE', problems.join('; '));
  }

  /** Brings what is filled from here up to date under a pod that runs; what is there stays if that cannot be done. */
  async refresh(pod: Pod, signal: AbortSignal): Promise<void> {
    await this.#fill(pod, signal);
  }

  /** Answers what keeps containers from starting: content that is whole, though old, does not. */
  async #fill(pod: Pod, signal: AbortSignal): Promise<readonly string[]> {
    const problems = (await this.#filled?.make(pod, signal)) ?? [];
    return problems.flatMap(({ volume, message, content }) => {
      const told = this.#tell(pod, volume, message);
      return content === 'none' ? [told] : [];
    });
  }

  #tell(pod: Pod, volume: string, problem: string): string {
    const message = `MountVolume.SetUp failed for volume "${volume}" : ${problem}`;
    this.#journal.event(pod, { type: 'Warning', reason: 'FailedMount', message });
    return message;
  }

  /** To be called once nothing of the pod runs; what is on the host's own paths stays. */
  async remove(pod: Pod, signal: AbortSignal): Promise<void> {
    await this.#directories.unbindParts(pod.metadata.uid, signal);
    await this.#filled?.remove(pod.metadata.uid, signal);
    await this.#inMemory?.remove(pod.metadata.uid, signal);
    await this.#directories.removeEmptyDirs(pod.metadata.uid);
  }

  /** Answers why the volume cannot be had. */
  async #makeOne(pod: Pod, volume: Volume, signal: AbortSignal): Promise<string | undefined> {
    const { name, hostPath, emptyDir, image } = volume;
    // Its image is seen to when a container that mounts it starts.
    if (image !== undefined) return undefined;
    if (hostPath !== undefined) return await this.#checkHostPath(hostPath.path, hostPath.type ?? '');
    if (emptyDir === undefined)
      return `volumes of the kind ${kindOf(volume)} are not supported by this node yet`;
    const { medium = '' } = emptyDir;
    if (medium !== '' && this.#inMemory !== undefined) {
      await this.#inMemory.make(pod, volume, signal);
      return undefined;
    }
    if (medium !== '')
      return `empty directories on the medium "${medium}" are not supported by this node yet`;
    await this.#files.makeSharedDirectory(this.#emptyDir(pod, name), sharedBy(pod));
    return undefined;
  }

  async #checkHostPath(path: string, type: string): Promise<string | undefined> {
    if (type === '') return undefined;
    const rule = hostPathRules.get(type);
    if (rule === undefined) return `${type} is an invalid volume type`;
    const kind = await this.#files.kindBehind(path);
    if (kind === undefined && type === 'DirectoryOrCreate') {
      await this.#files.makeDirectory(path, hostDirectoryMode);
      return undefined;
    }
    if (kind === undefined && type === 'FileOrCreate') {
      await this.#files.makeFile(path, hostFileMode);
      return undefined;
    }
    return kind === rule.kind ? undefined : `hostPath type check failed: ${path} is not a ${rule.called}`;
  }

  #emptyDir(pod: Pod, name: string): string {
    return posix.join(this.#directories.emptyDirsOf(pod.metadata.uid), name);
  }
}

/** Everybody in the pod may write there; with a group of its volumes, what is written belongs to that group. */
function sharedBy({ spec }: Pod): { readonly mode: number; readonly group?: number } {
  const group = spec.securityContext?.fsGroup;
  return group === undefined ? { mode: emptyDirMode } : { mode: emptyDirMode | setGroupBit, group };
}

/** By the field that is set besides the name. */
function kindOf(volume: Volume): string {
  const set = Object.entries(volume).find(([field, value]) => field !== 'name' && value !== undefined);
  return set?.[0] ?? 'unknown';
}
