import { createHash, type Hash } from 'node:crypto';
import type { ConfigFiles } from './file-system.ts';

/** What a configuration was read from, in a few characters: whoever looks after many nodes sees whether all have the same. */
export class Fingerprint {
  /** Reads the same files; each text that is read counts, in its turn. */
  readonly files: ConfigFiles;
  readonly #hash: Hash = createHash('sha256');

  constructor(files: ConfigFiles) {
    this.files = {
      readDirectory: (path, signal) => files.readDirectory(path, signal),
      readFile: async (path, signal) => {
        const text = await files.readFile(path, signal);
        this.#add(text);
        return text;
      },
    };
  }

  get text(): string {
    return `sha256:${this.#hash.copy().digest('hex')}`;
  }

  /** With its length before it: otherwise nobody could tell where one file ends and the next begins. */
  #add(text: string): void {
    const bytes = Buffer.from(text);
    const length = Buffer.alloc(8);
    length.writeBigUInt64BE(BigInt(bytes.length));
    this.#hash.update(length).update(bytes);
  }
}
