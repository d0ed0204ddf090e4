import type { KeyPair } from '../../protocols/x509/index.ts';
import type { CredentialFiles } from './credential-files.ts';

/**
 * The client certificate and key of a kubeconfig user: inline, or in a file that clients read again
 * after a renewal.
 */
export type KubeconfigUser =
  | { readonly kind: 'inline'; readonly certificatePem: string; readonly keyPem: string }
  | { readonly kind: 'file'; readonly path: string };

export interface KubeconfigContents {
  /** The server URL, such as `https://127.0.0.1:7443`. */
  readonly server: string;
  readonly authorityPem: string;
  readonly user: KubeconfigUser;
  /** The name of the cluster and the context; `kubeling` by default. */
  readonly name?: string | undefined;
  readonly userName: string;
}

/** A kubeconfig with one context, which is current. */
export function kubeconfigText(contents: KubeconfigContents): string {
  const { server, authorityPem, user, name = 'kubeling', userName } = contents;
  const base64 = (pem: string) => Buffer.from(pem).toString('base64');
  const credentials =
    user.kind === 'inline'
      ? {
          'client-certificate-data': base64(user.certificatePem),
          'client-key-data': base64(user.keyPem),
        }
      : { 'client-certificate': user.path, 'client-key': user.path };
  return [
    'apiVersion: v1',
    'kind: Config',
    'clusters:',
    `- name: ${JSON.stringify(name)}`,
    '  cluster:',
    ...fields({ server, 'certificate-authority-data': base64(authorityPem) }),
    'users:',
    `- name: ${JSON.stringify(userName)}`,
    '  user:',
    ...fields(credentials),
    'contexts:',
    `- name: ${JSON.stringify(name)}`,
    '  context:',
    ...fields({ cluster: name, user: userName, namespace: 'default' }),
    `current-context: ${JSON.stringify(name)}`,
    '',
  ].join('\n');
}

function fields(values: Readonly<Record<string, string>>): string[] {
  return Object.entries(values).map(([name, value]) => `    ${name}: ${JSON.stringify(value)}`);
}

export interface KubeconfigOptions {
  readonly path: string;
  /** The server URL, such as `https://127.0.0.1:7443`. */
  readonly server: string;
  readonly user: 'admin' | 'node';
  /**
   * `certificate` for a kubeconfig that contains the certificate and can be copied to other
   * machines; `file` for one that refers to the certificate file, which clients read again.
   */
  readonly credentials: 'certificate' | 'file';
  /** The context name; `kubeling` by default. */
  readonly name?: string | undefined;
}

export interface KubeconfigParts {
  readonly authorityPem: string;
  readonly pair: KeyPair;
  readonly file: string;
}

/**
 * Rewrites a kubeconfig when its content must change or the file was deleted. Edits by users are
 * kept until then.
 */
export class ManagedKubeconfig {
  readonly #files: CredentialFiles;
  readonly #options: KubeconfigOptions;
  readonly #parts: () => KubeconfigParts;
  #written: string | undefined;

  constructor(files: CredentialFiles, options: KubeconfigOptions, parts: () => KubeconfigParts) {
    this.#files = files;
    this.#options = options;
    this.#parts = parts;
  }

  async write(): Promise<void> {
    const text = this.#text();
    await this.#files.replace(this.#options.path, text, 0o600);
    this.#written = text;
  }

  async rewriteIfChanged(): Promise<void> {
    const isThere = (await this.#files.read(this.#options.path)) !== undefined;
    if (!isThere || this.#text() !== this.#written) await this.write();
  }

  #text(): string {
    const { server, credentials, name } = this.#options;
    const { authorityPem, pair, file } = this.#parts();
    const user: KubeconfigUser =
      credentials === 'file'
        ? { kind: 'file', path: file }
        : { kind: 'inline', certificatePem: pair.certificatePem, keyPem: pair.keyPem };
    return kubeconfigText({ server, authorityPem, user, name, userName: pair.leaf.commonName });
  }
}
