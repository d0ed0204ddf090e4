import { chmod, mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { apiTime, type Clock, describeError, errnoOf, KeyedMutex, type Logger } from '../lib/index.ts';
import { containerFieldPath, type Pod } from '../pods/index.ts';
import { json, type Request, type Response, type Route, text } from './router.ts';

/** Creates container checkpoints. */
export interface CheckpointHost {
  getPodByName(namespace: string, name: string): Pod | undefined;
  /**
   * Creates a checkpoint of a container and returns its path. Without a timeout the runtime's
   * default timeout applies.
   */
  checkpoint(
    pod: Pod,
    container: string,
    timeoutSeconds: number | undefined,
    signal: AbortSignal,
  ): Promise<string>;
}

export function checkpointRoute(host: CheckpointHost): Route {
  return {
    path: '/checkpoint/{namespace}/{pod}/{container}',
    methods: ['POST'],
    answer: (request, signal) => checkpoint(host, request, signal),
  };
}

async function checkpoint(host: CheckpointHost, request: Request, signal: AbortSignal): Promise<Response> {
  const { namespace = '', pod: name = '', container = '' } = request.params;
  const pod = host.getPodByName(namespace, name);
  if (pod === undefined) return text(404, 'pod does not exist');
  if (containerFieldPath(pod, container) === undefined)
    return text(404, `container ${container} does not exist`);
  const written = request.query.getAll('timeout').at(-1);
  if (written !== undefined && !/^[-+]?\d{1,15}$/.test(written)) {
    return text(404, 'cannot parse value of timeout parameter');
  }
  try {
    const timeout = written === undefined ? undefined : Number(written);
    return json({ items: [await host.checkpoint(pod, container, timeout, signal)] });
  } catch (error) {
    signal.throwIfAborted();
    return text(500, `checkpointing of ${namespace}/${name}/${container} failed (${describeError(error)})`);
  }
}

/**
 * Path of a checkpoint file: names of pods, namespaces and containers are joined, because they
 * contain no slashes.
 */
export function checkpointLocation(directory: string, pod: Pod, container: string, nowMs: number): string {
  const { name, namespace } = pod.metadata;
  const time = apiTime(nowMs);
  return `${directory}/checkpoint-${name}_${namespace}-${container}-${time}.tar`;
}

/** Requests a container checkpoint from the runtime into a new file. */
export interface ContainerCheckpointer {
  checkpoint(
    pod: Pod,
    container: string,
    location: string,
    timeoutSeconds: number | undefined,
    signal: AbortSignal,
  ): Promise<void>;
}

export interface CheckpointDirectoryDeps {
  /** Path of the checkpoint directory: `<root>/checkpoints`. */
  readonly directory: string;
  readonly freezer: ContainerCheckpointer;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Maximum number of checkpoint files; the oldest are removed. */
  readonly keep?: number | undefined;
  /** Maximum total size of checkpoint files in bytes; above it no further one is created. */
  readonly maxBytes?: number | undefined;
}

const defaultKeep = 20;
const defaultMaxBytes = 20 * 1024 ** 3;
const directoryMode = 0o700;

/**
 * The directory of container checkpoints. Checkpoints contain the memory of processes, which may be
 * secret and large: only the directory's owner can read them, and their number and size are
 * limited.
 */
export class CheckpointDirectory {
  readonly #deps: CheckpointDirectoryDeps;
  /** Serializes checkpoints, because each call first counts the existing ones. */
  readonly #mutex = new KeyedMutex<'folder'>();

  constructor(deps: CheckpointDirectoryDeps) {
    this.#deps = deps;
  }

  /**
   * Creates a checkpoint and returns its path. The partial file of a failed checkpoint is removed.
   */
  checkpoint(
    pod: Pod,
    container: string,
    timeoutSeconds: number | undefined,
    signal: AbortSignal,
  ): Promise<string> {
    return this.#mutex.run(
      'folder',
      async () => {
        const { directory, freezer, clock } = this.#deps;
        await createDirectory(directory);
        await this.#evictOldest();
        const location = checkpointLocation(directory, pod, container, clock.now());
        try {
          await freezer.checkpoint(pod, container, location, timeoutSeconds, signal);
          return location;
        } catch (error) {
          await rm(location, { force: true });
          throw error;
        }
      },
      signal,
    );
  }

  async #evictOldest(): Promise<void> {
    const { directory, logger, keep = defaultKeep, maxBytes = defaultMaxBytes } = this.#deps;
    const oldestFirst = await listCheckpoints(directory);
    let bytes = oldestFirst.reduce((sum, { size }) => sum + size, 0);
    for (const [index, { path, size }] of oldestFirst.entries()) {
      if (oldestFirst.length - index < keep && bytes <= maxBytes) return;
      await rm(path, { force: true });
      bytes -= size;
      logger.info('Removed old checkpoint', { path });
    }
  }
}

async function createDirectory(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: directoryMode });
  // An existing directory may have wider permissions, so they are set again.
  await chmod(directory, directoryMode);
}

interface Checkpoint {
  readonly path: string;
  readonly size: number;
  readonly createdMs: number;
}

/** Lists files with names of this kubelet's checkpoints; other files are never removed. */
async function listCheckpoints(directory: string): Promise<readonly Checkpoint[]> {
  const names = (await readdir(directory)).filter((name) => /^checkpoint-.*\.tar$/.test(name));
  const found = await Promise.all(names.map((name) => statCheckpoint(join(directory, name))));
  return found
    .flatMap((each) => each ?? [])
    .sort((a, b) => a.createdMs - b.createdMs || (a.path < b.path ? -1 : 1));
}

async function statCheckpoint(path: string): Promise<Checkpoint | undefined> {
  try {
    const { size, mtimeMs } = await stat(path);
    return { path, size, createdMs: mtimeMs };
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
