import { type KeyObject, X509Certificate } from 'node:crypto';
import { type Clock, describeError, KubelingError, type Logger } from '../../lib/index.ts';
import {
  type CertificateContents,
  type Identity,
  type KeyPair,
  keyPem,
  makeCertificate,
  newEcKey,
  readKeyPair,
  readPrivateKey,
} from '../../protocols/x509/index.ts';
import type { AuthorityFiles } from './files.ts';
import { lifeFrom, lives, whyRenew } from './lifetime.ts';

export interface AuthorityDeps {
  readonly files: AuthorityFiles;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Logger;
  /** One file for the certificate and its key, so that they always fit. */
  readonly path: string;
}

/** Who vouches for everybody else. Made anew it keeps its key: what it has signed stays signed. */
export class CertificateAuthority {
  /** Whether it was there already: what an earlier one signed is worth nothing to one that was made. */
  readonly origin: 'kept' | 'made';
  readonly #deps: AuthorityDeps;
  readonly #key: KeyObject;
  #pair: KeyPair;
  #certificate: X509Certificate;

  private constructor(deps: AuthorityDeps, origin: 'kept' | 'made', pair: KeyPair) {
    this.origin = origin;
    this.#deps = deps;
    this.#pair = pair;
    this.#key = mustReadKey(pair);
    this.#certificate = new X509Certificate(pair.certificatePem);
  }

  /** Reads it or makes it. What is there and cannot be read is laid aside, never lost. */
  static async open(deps: AuthorityDeps): Promise<CertificateAuthority> {
    const text = await deps.files.read(deps.path);
    const kept = text === undefined ? undefined : await readOrLayAside(text, deps);
    const authority =
      kept === undefined
        ? new CertificateAuthority(deps, 'made', await makeNew(deps))
        : new CertificateAuthority(deps, 'kept', kept);
    await authority.keepUp();
    return authority;
  }

  get pem(): string {
    return this.#pair.certificatePem;
  }

  get certificate(): X509Certificate {
    return this.#certificate;
  }

  get leaf(): KeyPair['leaf'] {
    return this.#pair.leaf;
  }

  /** Whether there is another certificate now. */
  async keepUp(): Promise<'same' | 'renewed'> {
    const { clock, log, path } = this.#deps;
    const { leaf } = this.#pair;
    const why = whyRenew(leaf, leaf, clock.now());
    if (why === undefined) return 'same';
    this.#pair = await write(this.#deps, this.#key, leaf);
    this.#certificate = new X509Certificate(this.#pair.certificatePem);
    log.warn('The certificate authority was renewed with the key it has', { file: path, why });
    return 'renewed';
  }

  /** A certificate in PEM, of at most the life asked for and at most our own. */
  issue(contents: Omit<CertificateContents, 'who'>): string {
    const notAfterMs = Math.min(contents.notAfterMs, this.#pair.leaf.notAfterMs);
    const issuer = { subject: this.#pair.leaf, key: this.#key };
    return makeCertificate({ ...contents, notAfterMs, who: 'leaf' }, issuer);
  }

  hasSigned(certificatePem: string): boolean {
    const certificate = new X509Certificate(certificatePem);
    return certificate.checkIssued(this.#certificate) && certificate.verify(this.#certificate.publicKey);
  }
}

async function readOrLayAside(text: string, deps: AuthorityDeps): Promise<KeyPair | undefined> {
  const { files, path, log } = deps;
  try {
    return readKeyPair({ certificate: text, key: text, from: path });
  } catch (error) {
    await files.replace(`${path}.broken`, text, 0o600);
    log.warn(
      'The certificate authority is made anew as it cannot be read: credentials it gave out are worth nothing now',
      { file: path, kept: `${path}.broken`, why: describeError(error) },
    );
    return undefined;
  }
}

/** Each has a name of its own, so that what an earlier one signed is not taken for a forgery. */
async function makeNew(deps: AuthorityDeps): Promise<KeyPair> {
  const commonName = `kubeling-ca@${Math.floor(deps.clock.now() / 1_000)}`;
  deps.log.info('Making a certificate authority', { file: deps.path });
  return await write(deps, newEcKey(), { commonName, organizations: [], dnsNames: [], ips: [] });
}

async function write(
  { files, clock, path }: AuthorityDeps,
  key: KeyObject,
  named: Identity,
): Promise<KeyPair> {
  const { commonName, organizations } = named;
  const identity: Identity = { commonName, organizations, dnsNames: [], ips: [] };
  const certificate = makeCertificate(
    {
      identity,
      key,
      ...lifeFrom(clock.now(), lives.authority),
      uses: ['digital-signature', 'key-encipherment', 'certificate-sign'],
      extendedUses: [],
      who: 'authority',
    },
    { subject: identity, key },
  );
  await files.replace(path, certificate + keyPem(key), 0o600);
  return readKeyPair({ certificate, key: keyPem(key), from: path });
}

function mustReadKey({ keyPem: pem, from }: KeyPair): KeyObject {
  const key = readPrivateKey(pem);
  if (key === undefined) throw new KubelingError('BUG', `Cannot read the key of ${from} a second time`);
  return key;
}
