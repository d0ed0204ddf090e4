import { KubelingError } from '../../lib/index.ts';
import type { RuntimeFiles } from '../../runtime/index.ts';
import { type DeviceRecord, decodeCheckpoint, encodeCheckpoint } from './checkpoint.ts';

const fileMode = 0o600;
/** Far more than the devices of a machine ever take. */
const largestFile = 64 << 20;

/** What is noted of devices on the disk. */
export class RecordKeeper {
  readonly #path: string;
  readonly #files: Pick<RuntimeFiles, 'readEnd' | 'replace'>;
  readonly #record: () => DeviceRecord;
  #isThere = false;
  #written = '';
  #writing: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  constructor(path: string, files: Pick<RuntimeFiles, 'readEnd' | 'replace'>, record: () => DeviceRecord) {
    this.#path = path;
    this.#files = files;
    this.#record = record;
  }

  /** Whether anything is noted, however damaged. */
  get isThere(): boolean {
    return this.#isThere;
  }

  /** Undefined when nothing is noted; throws DEVICE_CHECKPOINT when it cannot be used. */
  async read(): Promise<DeviceRecord | undefined> {
    const bytes = await this.#files.readEnd(this.#path, largestFile);
    this.#isThere = bytes !== undefined;
    return bytes && decodeCheckpoint(bytes.toString());
  }

  /** Settles when all that holds now is on the disk. */
  save(): Promise<void> {
    // The one under way may have begun before what is to be noted came to be.
    this.#next ??= this.#writing.then(() => {
      this.#next = undefined;
      const write = this.#write();
      this.#writing = write.catch(() => {});
      return write;
    });
    return this.#next;
  }

  /** Settles when nothing is being written. */
  async settled(): Promise<void> {
    await this.#next?.catch(() => {});
    await this.#writing;
  }

  async #write(): Promise<void> {
    const text = encodeCheckpoint(this.#record());
    if (text === this.#written) return;
    try {
      await this.#files.replace(this.#path, text, { mode: fileMode });
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new KubelingError('DEVICE_CHECKPOINT', `failed to write checkpoint file: ${why}`, { cause });
    }
    this.#written = text;
    this.#isThere = true;
  }
}
