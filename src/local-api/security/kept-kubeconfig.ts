import type { KeyPair } from '../../protocols/x509/index.ts';
import type { AuthorityFiles } from './files.ts';
import { type KubeconfigUser, kubeconfigText } from './kubeconfig.ts';

export interface KubeconfigWish {
  readonly path: string;
  /** Where the server answers, such as `https://127.0.0.1:7443`. */
  readonly server: string;
  readonly who: 'admin' | 'node';
  /** Whether it has the certificate in itself, to be carried elsewhere, or names the file, to be read again. */
  readonly holds: 'certificate' | 'file';
  /** Of the context; `kubeling` unless given. */
  readonly name?: string | undefined;
}

export interface KubeconfigParts {
  readonly authorityPem: string;
  readonly pair: KeyPair;
  readonly file: string;
}

/** A kubeconfig that is written again when what it says is another. What people add to it meanwhile is theirs. */
export class KeptKubeconfig {
  readonly #files: AuthorityFiles;
  readonly #wish: KubeconfigWish;
  readonly #parts: () => KubeconfigParts;
  #written: string | undefined;

  constructor(files: AuthorityFiles, wish: KubeconfigWish, parts: () => KubeconfigParts) {
    this.#files = files;
    this.#wish = wish;
    this.#parts = parts;
  }

  async write(): Promise<void> {
    const text = this.#text();
    await this.#files.replace(this.#wish.path, text, 0o600);
    this.#written = text;
  }

  async keepUp(): Promise<void> {
    const isThere = (await this.#files.read(this.#wish.path)) !== undefined;
    if (!isThere || this.#text() !== this.#written) await this.write();
  }

  #text(): string {
    const { server, holds, name } = this.#wish;
    const { authorityPem, pair, file } = this.#parts();
    const user: KubeconfigUser =
      holds === 'file'
        ? { kind: 'file', path: file }
        : { kind: 'inline', certificatePem: pair.certificatePem, keyPem: pair.keyPem };
    return kubeconfigText({ server, authorityPem, user, name, userName: pair.leaf.commonName });
  }
}
