import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const lookEveryMs = 100;
/** kubeling keeps the current certificate pair and the previous one. */
const keptPairs = 2;

/**
 * Checks one certificate of a node continuously: the symbolic link to the current certificate must
 * point to a complete pair at any moment.
 */
export class CertificateWitness {
  readonly #directory: string;
  readonly #prefix: string;
  readonly #tell: (text: string) => void;
  readonly #seen: X509Certificate[] = [];
  #last = '';
  #looks = 0;

  constructor(directory: string, prefix: string, tell: (text: string) => void) {
    this.#directory = directory;
    this.#prefix = prefix;
    this.#tell = tell;
  }

  /** All certificates so far, the current one last. */
  get seen(): readonly X509Certificate[] {
    return this.#seen;
  }

  get looks(): number {
    return this.#looks;
  }

  /** Starts when a certificate exists; rejects with the problem if the files are inconsistent. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#look();
      await delay(lookEveryMs, undefined, { signal }).catch(() => {});
    }
  }

  async #look(): Promise<void> {
    const current = join(this.#directory, `${this.#prefix}-current.pem`);
    const target = await readlink(current).catch((error) => {
      if (this.#seen.length === 0 && error.code === 'ENOENT') return undefined;
      throw error;
    });
    if (target === undefined) return;
    this.#looks++;
    const text = await readFile(current, 'utf8');
    if (text === this.#last) return;
    this.#last = text;
    await this.#meet(text, target);
  }

  async #meet(text: string, target: string): Promise<void> {
    assert.match(basename(target), new RegExp(`^${this.#prefix}-\\d{4}(-\\d\\d){5}\\.pem$`));
    const certificate = new X509Certificate(text);
    assert.ok(certificate.checkPrivateKey(createPrivateKey(text)), `${target} must hold the key too`);
    this.#seen.push(certificate);
    this.#tell(`${basename(target)} holds until ${certificate.validTo}`);
    const names = await readdir(this.#directory);
    const pairs = names.filter((name) => name.startsWith(`${this.#prefix}-2`));
    // Allows one additional pair, because a new pair may be written before the oldest one is
    // deleted.
    assert.ok(pairs.length <= keptPairs + 1, `old pairs pile up: ${pairs.join(', ')}`);
  }
}
