import { resolve } from 'node:path';
import type { CriClient, FilesystemUsage, ImageFsInfoResponse } from '../cri/index.ts';
import { type Clock, type FileCount, type Tree, type TreeResult, withDeadline } from '../lib/index.ts';
import { CachedSample } from './cached-sample.ts';
import type { RuntimeContainerStats } from './container-stats.ts';
import type { DiskUsage, FileUsage, NodeUsage, RuntimeDisk, StatsMachine } from './node-stats.ts';
import type { PodSubject } from './pod-subjects.ts';

export interface DiskSamplerDeps {
  readonly clock: Clock;
  readonly cri: Pick<CriClient, 'imageFsInfo'>;
  readonly machine: Pick<StatsMachine, 'space' | 'directories'>;
  readonly rootDir: string;
  readonly podLogsDir: string;
  /**
   * Parent directory of the runtime's sandbox directories, which are named by sandbox id; undefined
   * when unknown.
   */
  readonly sandboxesDir?: string | undefined;
  /** Reads the runtime's stats of containers by container id. */
  readonly runtimeStats: (signal: AbortSignal) => Promise<ReadonlyMap<string, RuntimeContainerStats>>;
}

/** Sizes of writable layers by container id. */
export type Layers = ReadonlyMap<string, FileUsage>;

/** Sizes of log files by pod UID. */
export type Logs = ReadonlyMap<string, PodLogs>;

interface PodLogs {
  /** Sizes of log files by container name. */
  readonly containers: ReadonlyMap<string, FileUsage>;
  readonly otherFiles: readonly FileUsage[];
}

type Disks = Pick<NodeUsage, 'disk' | 'images' | 'containers'>;

/**
 * Maximum age of cached layer sizes, which runtimes update only periodically; free space is read
 * each time.
 */
const maxAgeMs = 10_000;
/**
 * Time limit for the runtime's response; the node's own file system is read without waiting for it.
 */
const deadlineMs = 5_000;
/**
 * Time limit for counting the files of a log directory; when it expires, the files counted until
 * then are reported.
 */
const logsWithinMs = 20_000;

/** Reads free space of the node's file systems and disk usage of pods. */
export class DiskSampler {
  readonly #deps: DiskSamplerDeps;
  readonly #imageFs: CachedSample<ImageFsInfoResponse>;

  constructor(deps: DiskSamplerDeps) {
    this.#deps = deps;
    this.#imageFs = new CachedSample(deps.clock, (signal) => deps.cri.imageFsInfo({}, signal));
  }

  /** Reads the node's file systems; omits those of the runtime when it does not respond. */
  async disks(signal: AbortSignal): Promise<Disks> {
    const [disk, imageFs] = await Promise.all([
      this.#diskAt(this.#deps.rootDir, signal),
      this.#whereRuntimeWrites(signal),
    ]);
    signal.throwIfAborted();
    const [image] = imageFs?.imageFilesystems ?? [];
    // Older runtimes report the file system of images only, which then also contains the container
    // layers.
    const container = imageFs?.containerFilesystems[0] ?? image;
    const images = await this.#runtimeDisk(image, signal);
    const containers = container === image ? images : await this.#runtimeDisk(container, signal);
    return { disk, images, containers };
  }

  async #whereRuntimeWrites(signal: AbortSignal): Promise<ImageFsInfoResponse | undefined> {
    const limit = {
      clock: this.#deps.clock,
      ms: deadlineMs,
      what: 'query the container runtime for its file systems',
    };
    const isGood = (_: unknown, ageMs: number) => ageMs < maxAgeMs;
    return await withDeadline(limit, (inner) => this.#imageFs.get(isGood, inner), signal).catch(
      () => undefined,
    );
  }

  async layers(signal: AbortSignal): Promise<Layers> {
    const stats = await this.#deps.runtimeStats(signal);
    return new Map(
      [...stats].flatMap(([id, { layer }]) => (layer === undefined ? [] : [[id, layer] as const])),
    );
  }

  /**
   * Measures the log directories of pods, and the files outside of volumes that containers can
   * write: `/etc/hosts`, termination logs, and in the sandbox directory `/etc/resolv.conf` and
   * `/etc/hostname`.
   */
  async logs(pods: readonly PodSubject[], signal: AbortSignal): Promise<Logs> {
    const treesOf = pods.map((pod) => this.#writableTrees(pod));
    const results = await this.#deps.machine.directories.usagesOf(treesOf.flat(), logsWithinMs, signal);
    const atMs = this.#deps.clock.now();
    const remaining = results.values();
    return new Map(
      pods.map(({ uid }, index) => {
        const [logs, ...files] = remaining.take(treesOf[index]?.length ?? 0);
        return [uid, logsOf(logs, files, atMs)];
      }),
    );
  }

  /**
   * Returns the directories in which a pod can write outside of volumes; its log directory is the
   * first.
   */
  #writableTrees({ uid, name, namespace, sandbox }: PodSubject): readonly Tree[] {
    const { rootDir, podLogsDir, sandboxesDir } = this.#deps;
    const [logs, own] = [resolve(podLogsDir), resolve(rootDir, 'pods')];
    const files = [
      `${own}/${uid}/etc-hosts`,
      `${own}/${uid}/containers`,
      ...(sandboxesDir === undefined || sandbox === undefined ? [] : [`${sandboxesDir}/${sandbox.id}`]),
    ];
    return [
      { path: `${logs}/${namespace}_${name}_${uid}`, parts: 'by-directory', space: 'skipped' },
      ...files.map((path): Tree => ({ path, space: 'skipped' })),
    ];
  }

  async #runtimeDisk(
    runtimeUsage: FilesystemUsage | undefined,
    signal: AbortSignal,
  ): Promise<RuntimeDisk | undefined> {
    if (runtimeUsage === undefined) return undefined;
    const mountPoint = runtimeUsage.fsId?.mountpoint ?? '';
    return {
      mountPoint,
      disk: mountPoint === '' ? undefined : await this.#diskAt(mountPoint, signal),
      own: {
        atMs: Number(runtimeUsage.timestamp / 1_000_000n),
        usedBytes: Number(runtimeUsage.usedBytes?.value ?? 0n),
        inodesUsed: Number(runtimeUsage.inodesUsed?.value ?? 0n),
      },
    };
  }

  async #diskAt(path: string, signal: AbortSignal): Promise<DiskUsage | undefined> {
    const space = await this.#deps.machine.space(path, signal);
    return space === undefined ? undefined : { ...space, atMs: this.#deps.clock.now() };
  }
}

function logsOf(logs: TreeResult | undefined, files: readonly TreeResult[], atMs: number): PodLogs {
  const { '': beside, ...containers }: Record<string, FileCount> =
    logs?.kind === 'counted' ? { ...logs.usage.parts } : {};
  const of = ({ usedBytes, inodesUsed }: FileCount): FileUsage => ({ atMs, usedBytes, inodesUsed });
  return {
    containers: new Map(Object.entries(containers).map(([name, count]) => [name, of(count)])),
    otherFiles: [
      ...(beside === undefined ? [] : [of(beside)]),
      ...files.flatMap((result) => (result.kind === 'counted' ? [of(result.usage)] : [])),
    ],
  };
}
