import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import type { Logger, WriteOptions } from '../lib/index.ts';
import { manifestLimit } from './manifest.ts';

/** Reads and writes checkpoint files; a missing file is no failure. */
export interface CheckpointFiles {
  names(directory: string): Promise<readonly string[]>;
  readEnd(path: string, maxBytes: number): Promise<Buffer | undefined>;
  replace(path: string, text: string, options: WriteOptions): Promise<void>;
  remove(path: string): Promise<void>;
}

/**
 * Saves the last valid content of each manifest, so that it survives a restart of the kubelet. Its
 * methods never reject.
 */
export interface LastGoodManifests {
  /** Returns the saved content of a manifest; undefined when there is none. */
  read(path: string): Promise<Uint8Array | undefined>;
  /** Saves the content of a manifest; resolves when it would survive a restart of the kubelet. */
  save(path: string, text: Uint8Array): Promise<void>;
  /** Whether a checkpoint exists for a manifest other than the given ones. */
  hasOthersThan(paths: Iterable<string>): Promise<boolean>;
  /** Removes the checkpoints of all manifests other than the given ones. */
  retain(paths: Iterable<string>): Promise<void>;
}

/** The implementation of LastGoodManifests that saves nothing, for sources without checkpoints. */
export const noLastGoodManifests: LastGoodManifests = {
  read: async () => undefined,
  save: async () => {},
  hasOthersThan: async () => false,
  retain: async () => {},
};

/**
 * Manifests may contain secrets, so files are private. fsync is not needed, because manifests are
 * read again after a power failure.
 */
const writeOptions = { mode: 0o600, survives: 'crash' } as const;

/** Saves the last valid content of each manifest of one source, in one file per manifest. */
export class ManifestCheckpoints implements LastGoodManifests {
  readonly #files: CheckpointFiles;
  readonly #directory: string;
  readonly #logger: Logger;
  #names: Promise<Set<string>> | undefined;

  constructor(options: {
    readonly files: CheckpointFiles;
    readonly directory: string;
    readonly logger: Logger;
  }) {
    this.#files = options.files;
    this.#directory = options.directory;
    this.#logger = options.logger;
  }

  async read(place: string): Promise<Uint8Array | undefined> {
    const path = this.#path(nameOf(place));
    return await this.#attempt('read the last good manifest', path, undefined, () =>
      this.#files.readEnd(path, manifestLimit),
    );
  }

  async save(place: string, text: Uint8Array): Promise<void> {
    const name = nameOf(place);
    const path = this.#path(name);
    (await this.#knownNames()).add(name);
    await this.#attempt('save the last good manifest', path, undefined, () =>
      this.#files.replace(path, Buffer.from(text).toString('utf8'), writeOptions),
    );
  }

  async hasOthersThan(paths: Iterable<string>): Promise<boolean> {
    return (await this.#beyond(paths)).length > 0;
  }

  async retain(paths: Iterable<string>): Promise<void> {
    const known = await this.#knownNames();
    for (const name of await this.#beyond(paths)) {
      known.delete(name);
      const path = this.#path(name);
      await this.#attempt('remove the last good manifest', path, undefined, () => this.#files.remove(path));
    }
  }

  async #beyond(paths: Iterable<string>): Promise<readonly string[]> {
    const names = new Set([...paths].map(nameOf));
    return [...(await this.#knownNames())].filter((name) => !names.has(name));
  }

  #knownNames(): Promise<Set<string>> {
    this.#names ??= this.#attempt('list the last good manifests', this.#directory, [], () =>
      this.#files.names(this.#directory),
    ).then((names) => new Set(names));
    return this.#names;
  }

  #path(name: string): string {
    return posix.join(this.#directory, name);
  }

  /**
   * Logs a failure and continues, because a checkpoint is needed only if the manifest is invalid at
   * the next start.
   */
  async #attempt<T>(what: string, path: string, otherwise: T, act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (error) {
      this.#logger.error(`Cannot ${what}`, error, { path });
      return otherwise;
    }
  }
}

/** File name of a checkpoint: a hash, because a path or URL may be long and contain secrets. */
function nameOf(path: string): string {
  return createHash('sha256').update(path).digest('hex').slice(0, 32);
}
