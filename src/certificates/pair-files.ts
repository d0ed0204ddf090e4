import { type KeyPair, readKeyPair } from '../protocols/x509/index.ts';
import type { CertificateFiles } from './files.ts';

/** A certificate and its key, which may be in one file. */
export interface PairFiles {
  readonly certificateFile: string;
  readonly keyFile: string;
}

/** Undefined when one of the two is not there; throws when they cannot be read or do not fit. */
export async function loadPairFiles(files: CertificateFiles, at: PairFiles): Promise<KeyPair | undefined> {
  return await new PairReader(files, at).load();
}

/** Reads a pair again and again; what has not changed is not taken apart again. */
export class PairReader {
  readonly at: PairFiles;
  readonly #files: CertificateFiles;
  #last: { readonly certificate: string; readonly key: string; readonly pair: KeyPair } | undefined;

  constructor(files: CertificateFiles, at: PairFiles) {
    this.#files = files;
    this.at = at;
  }

  /** Undefined when one of the two is not there; throws when they cannot be read or do not fit. */
  async load(): Promise<KeyPair | undefined> {
    const { certificateFile, keyFile } = this.at;
    const [certificate, key] = await Promise.all([
      this.#files.read(certificateFile),
      this.#files.read(keyFile),
    ]);
    if (certificate === undefined || key === undefined) return undefined;
    const last = this.#last;
    if (last?.certificate === certificate && last.key === key) return last.pair;
    const from = certificateFile === keyFile ? certificateFile : `${certificateFile} and ${keyFile}`;
    const pair = readKeyPair({ certificate, key, from });
    this.#last = { certificate, key, pair };
    return pair;
  }
}
