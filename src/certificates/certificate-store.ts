import { basename, dirname, join, resolve } from 'node:path';
import { apiTime, type Clock, KubelingError, type Logger } from '../lib/index.ts';
import { isExpired, type KeyPair, readKeyPair } from '../protocols/x509/index.ts';
import type { CertificateFiles } from './files.ts';
import { loadPairFiles, type PairFiles } from './files.ts';

export interface CertificateStoreOptions {
  readonly files: CertificateFiles;
  readonly clock: Clock;
  readonly log: Logger;
  /** The absolute path of the store. */
  readonly directory: string;
  /** The file name prefix: `kubelet-client` or `kubelet-server`. */
  readonly prefix: string;
  /** The files to load when the store has no pair. */
  readonly configured?: PairFiles | undefined;
}

const privateMode = 0o600;

/**
 * Stores certificates with their keys on disk, in the layout of the Go kubelet:
 *
 *     kubelet-client-2026-01-31-12-00-00.pem: certificates and key
 *     kubelet-client-current.pem: link to the pair in use
 *     kubelet-client-updated.pem: link that is about to be renamed to -current
 *
 * The current and the previous pair are kept. If the process is killed at any time, the next one
 * finds a complete pair.
 */
export class CertificateStore {
  readonly #options: CertificateStoreOptions;
  #problems: readonly string[] = [];

  private constructor(options: CertificateStoreOptions) {
    this.#options = options;
  }

  /**
   * Opens the store and completes an interrupted switch. Throws CERTIFICATE_STORE if another file
   * is at the path of a link.
   */
  static async open(options: CertificateStoreOptions): Promise<CertificateStore> {
    const store = new CertificateStore(options);
    await store.#finishSwitch();
    return store;
  }

  get currentPath(): string {
    return this.#path('current');
  }

  get #updatedPath(): string {
    return this.#path('updated');
  }

  get directory(): string {
    return this.#options.directory;
  }

  get prefix(): string {
    return this.#options.prefix;
  }

  /** The problems of the files that the last `load` skipped. */
  get problems(): readonly string[] {
    return this.#problems;
  }

  /**
   * Returns the first valid pair of: current, the configured files, `<prefix>.crt` with `.key`; if
   * none is valid, the first expired one.
   */
  async load(): Promise<KeyPair | undefined> {
    const { directory, prefix, configured, clock } = this.#options;
    const problems: string[] = [];
    const places = [
      { certificateFile: this.currentPath, keyFile: this.currentPath },
      ...(configured === undefined ? [] : [configured]),
      { certificateFile: join(directory, `${prefix}.crt`), keyFile: join(directory, `${prefix}.key`) },
    ];
    const found: KeyPair[] = [];
    for (const place of places) found.push(...(await this.#tryLoad(place, problems)));
    this.#problems = problems;
    return found.find(({ leaf }) => !isExpired(leaf, clock.now())) ?? found[0];
  }

  /**
   * Stores the pair and makes it the current one. Throws before any change if certificate and key
   * do not match.
   */
  async update(certificate: string, key: string): Promise<KeyPair> {
    const path = this.#path(timeName(this.#options.clock.now()));
    const pair = readKeyPair({ certificate, key, from: path });
    await this.expectLinks();
    const before = await this.#target(this.currentPath);
    await this.#options.files.replace(path, pair.certificatePem + pair.keyPem, privateMode);
    await this.#switchTo(path);
    await this.#prune(new Set([path, before ?? path]));
    return pair;
  }

  async #tryLoad(place: PairFiles, problems: string[]): Promise<KeyPair[]> {
    try {
      const pair = await loadPairFiles(this.#options.files, place);
      return pair === undefined ? [] : [pair];
    } catch (error) {
      this.#options.log.error('Skipped unusable certificate', error, { file: place.certificateFile });
      problems.push(error instanceof Error ? error.message : String(error));
      return [];
    }
  }

  async #switchTo(path: string): Promise<void> {
    const { files } = this.#options;
    await files.remove(this.#updatedPath);
    await files.link(path, this.#updatedPath);
    // The rename replaces the old link atomically, so a current pair exists at any time.
    await files.rename(this.#updatedPath, this.currentPath);
  }

  /**
   * A remaining -updated link is newer than -current: it replaces -current if its target exists.
   */
  async #finishSwitch(): Promise<void> {
    const { files, log } = this.#options;
    if ((await files.kindAt(this.#updatedPath)) === undefined) return;
    await this.expectLinks();
    const location = { certificateFile: this.#updatedPath, keyFile: this.#updatedPath };
    const [pair] = await this.#tryLoad(location, []);
    if (pair === undefined) return await files.remove(this.#updatedPath);
    await files.rename(this.#updatedPath, this.currentPath);
    log.info('Completed interrupted switch of certificates', { file: this.currentPath });
  }

  /**
   * Throws CERTIFICATE_STORE if another file is at the path of a link, because `update` would fail.
   */
  async expectLinks(): Promise<void> {
    await this.#expectLink(this.currentPath);
    await this.#expectLink(this.#updatedPath);
  }

  async #expectLink(path: string): Promise<void> {
    const kind = await this.#options.files.kindAt(path);
    if (kind === undefined || kind === 'link') return;
    throw new KubelingError(
      'CERTIFICATE_STORE',
      `Cannot switch certificates as ${path} must be a symbolic link: it is a ${kind}. Move it away, or to ${join(dirname(path), this.#options.prefix)}.crt and .key, and start again`,
      { details: { path } },
    );
  }

  async #target(link: string): Promise<string | undefined> {
    const target = await this.#options.files.readLink(link);
    return target === undefined ? undefined : resolve(dirname(link), target);
  }

  /** Removes old pairs; a failure is only logged, because old pairs are not used. */
  async #prune(keep: ReadonlySet<string>): Promise<void> {
    const { files, directory, prefix, log } = this.#options;
    try {
      const names = await files.names(directory);
      const old = names.filter((name) => isPairName(name, prefix) && !keep.has(join(directory, name)));
      for (const name of old) await files.remove(join(directory, name));
      if (old.length > 0) log.v(2)?.info('Removed old certificates', { directory, names: old });
    } catch (error) {
      log.error('Failed to remove old certificates', error, { directory });
    }
  }

  #path(qualifier: string): string {
    return join(this.#options.directory, `${this.#options.prefix}-${qualifier}.pem`);
  }
}

/** Formats a time as `2026-01-31-12-00-00` in UTC, because local time may be set back. */
function timeName(ms: number): string {
  return apiTime(ms).replace('Z', '').replaceAll(/[T:]/g, '-');
}

function isPairName(name: string, prefix: string): boolean {
  const middle = basename(name, '.pem').slice(prefix.length + 1);
  return name === `${prefix}-${middle}.pem` && /^\d{4}(?:-\d\d){5}$/.test(middle);
}
