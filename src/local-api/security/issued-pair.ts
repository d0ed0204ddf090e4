import { type Clock, describeError, type Logger } from '../../lib/index.ts';
import {
  type ExtendedUse,
  type Identity,
  type KeyPair,
  keyPem,
  newEcKey,
  readKeyPair,
} from '../../protocols/x509/index.ts';
import type { CertificateAuthority } from './authority.ts';
import type { AuthorityFiles } from './files.ts';
import { lifeFrom, lives, whyRenew } from './lifetime.ts';

export interface IssuedPairDeps {
  readonly files: AuthorityFiles;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Logger;
  readonly authority: CertificateAuthority;
  /** One file for the certificate and its key, so that they always fit. */
  readonly path: string;
  /** For people. */
  readonly what: string;
  readonly use: ExtendedUse;
  /** As it has to be now. */
  readonly wanted: () => Identity;
}

/** A certificate of our own authority with its key, in one file, made anew whenever it has to be. */
export class IssuedPair {
  readonly #deps: IssuedPairDeps;
  #pair: KeyPair;

  private constructor(deps: IssuedPairDeps, pair: KeyPair) {
    this.#deps = deps;
    this.#pair = pair;
  }

  static async open(deps: IssuedPairDeps): Promise<IssuedPair> {
    const text = await deps.files.read(deps.path);
    const kept = text === undefined ? 'there is none' : readKept(text, deps.path);
    if (typeof kept === 'string') return new IssuedPair(deps, await issue(deps, kept));
    const pair = new IssuedPair(deps, kept);
    await pair.keepUp();
    return pair;
  }

  get current(): KeyPair {
    return this.#pair;
  }

  async keepUp(): Promise<'same' | 'renewed'> {
    const why = this.#whyRenew();
    if (why === undefined) return 'same';
    this.#pair = await issue(this.#deps, why);
    return 'renewed';
  }

  #whyRenew(): string | undefined {
    const { authority, clock, wanted } = this.#deps;
    if (!authority.hasSigned(this.#pair.certificatePem)) return 'another authority has signed it';
    return whyRenew(this.#pair.leaf, wanted(), clock.now());
  }
}

/** The pair, or why it is none. */
function readKept(text: string, from: string): KeyPair | string {
  try {
    return readKeyPair({ certificate: text, key: text, from });
  } catch (error) {
    return `it cannot be read: ${describeError(error)}`;
  }
}

async function issue(deps: IssuedPairDeps, why: string): Promise<KeyPair> {
  const { files, clock, log, authority, path, what, use, wanted } = deps;
  const key = newEcKey();
  const certificate = authority.issue({
    identity: wanted(),
    key,
    ...lifeFrom(clock.now(), lives.leaf, authority.leaf),
    uses: ['digital-signature'],
    extendedUses: [use],
  });
  await files.replace(path, certificate + keyPem(key), 0o600);
  log.info(`Made ${what}`, { file: path, why });
  return readKeyPair({ certificate, key: keyPem(key), from: path });
}
