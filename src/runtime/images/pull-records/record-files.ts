import { posix } from 'node:path';
import { describeError, type Logger, LruMap } from '../../../lib/index.ts';
import type { RuntimeFiles } from '../../containers/runtime-files.ts';
import {
  type Decoded,
  decodeIntent,
  decodeRecord,
  encodeIntent,
  encodeRecord,
  isRecordFile,
  type PulledRecord,
  recordFileName,
} from './record-format.ts';

export interface RecordFilesDeps {
  readonly files: Pick<RuntimeFiles, 'makeDirectory' | 'names' | 'readEnd' | 'replace' | 'remove'>;
  readonly logger: Logger;
  readonly rootDir: string;
}

const directoryMode = 0o700;
const fileMode = 0o600;
const largestRecord = 1 << 20;
/**
 * The maximum number of cached paths of missing files; it exceeds the number of images that the
 * pods of a node use.
 */
const absentKept = 1_000;

/** The files of pull intents and pull records, each replaced atomically. */
export class RecordFiles {
  readonly #deps: RecordFilesDeps;
  readonly #pulling: string;
  readonly #pulled: string;
  /**
   * The paths of files that do not exist; valid because only this process writes to the directory.
   */
  readonly #absent = new LruMap<string, true>({ capacity: absentKept });
  #writes = 0;

  constructor(deps: RecordFilesDeps) {
    this.#deps = deps;
    this.#pulling = posix.join(deps.rootDir, 'image_manager', 'pulling');
    this.#pulled = posix.join(deps.rootDir, 'image_manager', 'pulled');
  }

  /** Creates the directories and rewrites files of older versions; called before the first use. */
  async open(): Promise<void> {
    for (const directory of [this.#pulling, this.#pulled]) {
      await this.#deps.files.makeDirectory(directory, directoryMode);
    }
    for (const { value, version } of await this.#readAll(this.#pulling, decodeIntent)) {
      if (version === 'older') await this.writeIntent(value);
    }
    for (const { value, version } of await this.#readAll(this.#pulled, decodeRecord)) {
      if (version === 'older') await this.writeRecord(value);
    }
  }

  async intents(): Promise<readonly string[]> {
    return (await this.#readAll(this.#pulling, decodeIntent)).map(({ value }) => value);
  }

  async hasIntent(image: string): Promise<boolean> {
    const text = await this.#read(posix.join(this.#pulling, recordFileName(image)));
    return text !== undefined && decodeIntent(text).value === image;
  }

  writeIntent(image: string): Promise<void> {
    return this.#write(posix.join(this.#pulling, recordFileName(image)), encodeIntent(image));
  }

  removeIntent(image: string): Promise<void> {
    return this.#deps.files.remove(posix.join(this.#pulling, recordFileName(image)));
  }

  async records(): Promise<readonly PulledRecord[]> {
    return (await this.#readAll(this.#pulled, decodeRecord)).map(({ value }) => value);
  }

  /** Reads a record; throws FILE_CORRUPT when it is unreadable. */
  async record(imageRef: string): Promise<PulledRecord | undefined> {
    const text = await this.#read(posix.join(this.#pulled, recordFileName(imageRef)));
    const record = text === undefined ? undefined : decodeRecord(text).value;
    return record?.imageRef === imageRef ? record : undefined;
  }

  writeRecord(record: PulledRecord): Promise<void> {
    return this.#write(posix.join(this.#pulled, recordFileName(record.imageRef)), encodeRecord(record));
  }

  removeRecord(imageRef: string): Promise<void> {
    return this.#deps.files.remove(posix.join(this.#pulled, recordFileName(imageRef)));
  }

  /** Lists all records; unreadable files are skipped and logged. */
  async #readAll<T>(directory: string, decode: (text: string) => Decoded<T>): Promise<readonly Decoded<T>[]> {
    const found: Decoded<T>[] = [];
    for (const name of (await this.#deps.files.names(directory)).filter(isRecordFile)) {
      const path = posix.join(directory, name);
      try {
        const text = await this.#read(path);
        if (text !== undefined) found.push(decode(text));
      } catch (error) {
        this.#deps.logger.warn('Skipped unreadable image pull record', {
          path,
          because: describeError(error),
        });
      }
    }
    return found;
  }

  async #read(path: string): Promise<string | undefined> {
    if (this.#absent.get(path)) return undefined;
    const before = this.#writes;
    const bytes = await this.#deps.files.readEnd(path, largestRecord);
    if (bytes === undefined && before === this.#writes) this.#absent.set(path, true);
    return bytes?.toString('utf8');
  }

  async #write(path: string, text: string): Promise<void> {
    const comes = () => {
      this.#writes++;
      this.#absent.delete(path);
    };
    comes();
    try {
      await this.#deps.files.makeDirectory(posix.dirname(path), directoryMode);
      await this.#deps.files.replace(path, text, { mode: fileMode });
    } finally {
      comes();
    }
  }
}
