import { type KeyObject, X509Certificate } from 'node:crypto';
import { apiTime, type Clock, describeError, KubelingError, type Logger } from '../../lib/index.ts';
import {
  type CertificateContents,
  createCertificate,
  type ExtendedUse,
  type Identity,
  isExpired,
  type KeyPair,
  keyPem,
  type Leaf,
  missingFrom,
  newEcKey,
  readKeyPair,
  readPrivateKey,
} from '../../protocols/x509/index.ts';
import type { CredentialFiles } from './credential-files.ts';

export interface AuthorityDeps {
  readonly files: CredentialFiles;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Logger;
  /** One file for the certificate and its key, so that they always match. */
  readonly path: string;
}

/** The CA. A renewal keeps the key, so that issued certificates stay valid. */
export class CertificateAuthority {
  /**
   * Whether the CA was loaded or created: certificates of a previous CA are not valid under a new
   * one.
   */
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

  /** Loads or creates the CA. An unreadable file is set aside. */
  static async open(deps: AuthorityDeps): Promise<CertificateAuthority> {
    const text = await deps.files.read(deps.path);
    const stored = text === undefined ? undefined : await readOrSetAside(text, deps);
    const authority =
      stored === undefined
        ? new CertificateAuthority(deps, 'made', await createAuthority(deps))
        : new CertificateAuthority(deps, 'kept', stored);
    await authority.renewIfDue();
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

  /** Renews the CA certificate if necessary; returns whether it did. */
  async renewIfDue(): Promise<'same' | 'renewed'> {
    const { clock, log, path } = this.#deps;
    const { leaf } = this.#pair;
    const why = renewalReason(leaf, leaf, clock.now());
    if (why === undefined) return 'same';
    this.#pair = await write(this.#deps, this.#key, leaf);
    this.#certificate = new X509Certificate(this.#pair.certificatePem);
    log.warn('Renewed the CA certificate with its existing key', { file: path, why });
    return 'renewed';
  }

  /** Signs a certificate as PEM, valid at most as long as the CA. */
  issue(contents: Omit<CertificateContents, 'role'>): string {
    const notAfterMs = Math.min(contents.notAfterMs, this.#pair.leaf.notAfterMs);
    const issuer = { subject: this.#pair.leaf, key: this.#key };
    return createCertificate({ ...contents, notAfterMs, role: 'leaf' }, issuer);
  }

  hasSigned(certificatePem: string): boolean {
    const certificate = new X509Certificate(certificatePem);
    return certificate.checkIssued(this.#certificate) && certificate.verify(this.#certificate.publicKey);
  }
}

async function readOrSetAside(text: string, deps: AuthorityDeps): Promise<KeyPair | undefined> {
  const { files, path, log } = deps;
  try {
    return readKeyPair({ certificate: text, key: text, from: path });
  } catch (error) {
    await files.replace(`${path}.broken`, text, 0o600);
    log.warn('Created a new CA because the old one is unreadable: issued credentials are invalid', {
      file: path,
      kept: `${path}.broken`,
      why: describeError(error),
    });
    return undefined;
  }
}

/**
 * Each CA has a unique name, so that certificates of a previous CA are not mistaken for forgeries.
 */
async function createAuthority(deps: AuthorityDeps): Promise<KeyPair> {
  const commonName = `kubeling-ca@${Math.floor(deps.clock.now() / 1_000)}`;
  deps.log.info('Creating CA', { file: deps.path });
  return await write(deps, newEcKey(), { commonName, organizations: [], dnsNames: [], ips: [] });
}

async function write(
  { files, clock, path }: AuthorityDeps,
  key: KeyObject,
  named: Identity,
): Promise<KeyPair> {
  const { commonName, organizations } = named;
  const identity: Identity = { commonName, organizations, dnsNames: [], ips: [] };
  const certificate = createCertificate(
    {
      identity,
      key,
      ...validityFrom(clock.now(), lifetimes.authority),
      uses: ['digital-signature', 'key-encipherment', 'certificate-sign'],
      extendedUses: [],
      role: 'authority',
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

const dayMs = 86_400_000;

/** The validity periods of issued certificates. */
export const lifetimes = { authority: 3_650 * dayMs, leaf: 365 * dayMs } as const;

/**
 * Certificates are valid from before now, to tolerate clock skew and clocks that are corrected soon
 * after boot.
 */
const backdatedMs = 3_600_000;

export interface Validity {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** A validity period from slightly before now, limited by the validity of the CA. */
function validityFrom(nowMs: number, lifeMs: number, within?: Validity): Validity {
  const begin = nowMs - backdatedMs;
  const end = Math.min(begin + lifeMs, within?.notAfterMs ?? Number.POSITIVE_INFINITY);
  return { notBeforeMs: begin, notAfterMs: end };
}

/** The time at which a certificate is renewed: the start of the last third of its validity. */
function renewalMs({ notBeforeMs, notAfterMs }: Validity): number {
  return notAfterMs - (notAfterMs - notBeforeMs) / 3;
}

/** Why a certificate must be renewed; undefined if it need not be. */
function renewalReason(leaf: Leaf, wanted: Identity, nowMs: number): string | undefined {
  const missing = missingFrom(leaf, wanted);
  if (isExpired(leaf, nowMs)) return `it expired ${apiTime(leaf.notAfterMs)}`;
  if (nowMs < leaf.notBeforeMs)
    return `it is not valid before ${apiTime(leaf.notBeforeMs)}: the clock was ahead when it was made`;
  if (missing.length > 0) return `it lacks ${missing.join(', ')}`;
  return nowMs >= renewalMs(leaf) ? `it expires ${apiTime(leaf.notAfterMs)}` : undefined;
}

export interface IssuedCertificateDeps {
  readonly files: CredentialFiles;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Logger;
  readonly authority: CertificateAuthority;
  /** One file for the certificate and its key, so that they always match. */
  readonly path: string;
  /** The name of the certificate in log messages. */
  readonly what: string;
  readonly use: ExtendedUse;
  /** The subject and the alternative names that the certificate must have. */
  readonly required: () => Identity;
}

/**
 * A certificate issued by the API server's own CA, with its key in the same file; renewed when
 * necessary.
 */
export class IssuedCertificate {
  readonly #deps: IssuedCertificateDeps;
  #pair: KeyPair;

  private constructor(deps: IssuedCertificateDeps, pair: KeyPair) {
    this.#deps = deps;
    this.#pair = pair;
  }

  static async open(deps: IssuedCertificateDeps): Promise<IssuedCertificate> {
    const text = await deps.files.read(deps.path);
    const stored = text === undefined ? 'it does not exist' : readStored(text, deps.path);
    if (typeof stored === 'string') return new IssuedCertificate(deps, await issue(deps, stored));
    const pair = new IssuedCertificate(deps, stored);
    await pair.renewIfDue();
    return pair;
  }

  get current(): KeyPair {
    return this.#pair;
  }

  async renewIfDue(): Promise<'same' | 'renewed'> {
    const why = this.#renewalReason();
    if (why === undefined) return 'same';
    this.#pair = await issue(this.#deps, why);
    return 'renewed';
  }

  #renewalReason(): string | undefined {
    const { authority, clock, required } = this.#deps;
    if (!authority.hasSigned(this.#pair.certificatePem)) return 'it was signed by another CA';
    return renewalReason(this.#pair.leaf, required(), clock.now());
  }
}

/** Parses a stored key pair; if it is unusable, returns the reason. */
function readStored(text: string, from: string): KeyPair | string {
  try {
    return readKeyPair({ certificate: text, key: text, from });
  } catch (error) {
    return `it cannot be read: ${describeError(error)}`;
  }
}

async function issue(deps: IssuedCertificateDeps, why: string): Promise<KeyPair> {
  const { files, clock, log, authority, path, what, use, required } = deps;
  const key = newEcKey();
  const certificate = authority.issue({
    identity: required(),
    key,
    ...validityFrom(clock.now(), lifetimes.leaf, authority.leaf),
    uses: ['digital-signature'],
    extendedUses: [use],
  });
  await files.replace(path, certificate + keyPem(key), 0o600);
  log.info(`Issued ${what}`, { file: path, why });
  return readKeyPair({ certificate, key: keyPem(key), from: path });
}
