import { type KeyObject, X509Certificate } from 'node:crypto';
import { apiTime, type Clock, describeError, KubelingError, type Logger } from '../../lib/index.ts';
import {
  type CertificateContents,
  type ExtendedUse,
  type Identity,
  isExpired,
  type KeyPair,
  keyPem,
  type Leaf,
  lackingOf,
  makeCertificate,
  newEcKey,
  readKeyPair,
  readPrivateKey,
} from '../../protocols/x509/index.ts';
import type { CredentialFiles } from './credential-files.ts';

export interface AuthorityDeps {
  readonly files: CredentialFiles;
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
    const kept = text === undefined ? undefined : await readOrSetAside(text, deps);
    const authority =
      kept === undefined
        ? new CertificateAuthority(deps, 'made', await createAuthority(deps))
        : new CertificateAuthority(deps, 'kept', kept);
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

  /** Whether there is another certificate now. */
  async renewIfDue(): Promise<'same' | 'renewed'> {
    const { clock, log, path } = this.#deps;
    const { leaf } = this.#pair;
    const why = renewalReason(leaf, leaf, clock.now());
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

async function readOrSetAside(text: string, deps: AuthorityDeps): Promise<KeyPair | undefined> {
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
async function createAuthority(deps: AuthorityDeps): Promise<KeyPair> {
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
      ...validityFrom(clock.now(), lifetimes.authority),
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

const dayMs = 86_400_000;

/** How long what we make lives. */
export const lifetimes = { authority: 3_650 * dayMs, leaf: 365 * dayMs } as const;

/** For clocks that differ, and for one that is set right soon after the machine has started. */
const backdatedMs = 3_600_000;

export interface Validity {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** From a little before now on, and never beyond what vouches for it. */
export function validityFrom(nowMs: number, lifeMs: number, within?: Validity): Validity {
  const begin = nowMs - backdatedMs;
  const end = Math.min(begin + lifeMs, within?.notAfterMs ?? Number.POSITIVE_INFINITY);
  return { notBeforeMs: begin, notAfterMs: end };
}

/** When the last third of a life begins. */
export function renewalMs({ notBeforeMs, notAfterMs }: Validity): number {
  return notAfterMs - (notAfterMs - notBeforeMs) / 3;
}

/** Why a certificate should be made anew now, in words; undefined while it is as it should be. */
export function renewalReason(leaf: Leaf, wanted: Identity, nowMs: number): string | undefined {
  const lacking = lackingOf(leaf, wanted);
  if (isExpired(leaf, nowMs)) return `it expired ${apiTime(leaf.notAfterMs)}`;
  if (nowMs < leaf.notBeforeMs)
    return `it is not valid before ${apiTime(leaf.notBeforeMs)}: the clock was ahead when it was made`;
  if (lacking.length > 0) return `it lacks ${lacking.join(', ')}`;
  return nowMs >= renewalMs(leaf) ? `it expires ${apiTime(leaf.notAfterMs)}` : undefined;
}

export interface IssuedCertificateDeps {
  readonly files: CredentialFiles;
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
export class IssuedCertificate {
  readonly #deps: IssuedCertificateDeps;
  #pair: KeyPair;

  private constructor(deps: IssuedCertificateDeps, pair: KeyPair) {
    this.#deps = deps;
    this.#pair = pair;
  }

  static async open(deps: IssuedCertificateDeps): Promise<IssuedCertificate> {
    const text = await deps.files.read(deps.path);
    const kept = text === undefined ? 'there is none' : readStored(text, deps.path);
    if (typeof kept === 'string') return new IssuedCertificate(deps, await issue(deps, kept));
    const pair = new IssuedCertificate(deps, kept);
    await pair.renewIfDue();
    return pair;
  }

  get current(): KeyPair {
    return this.#pair;
  }

  async renewIfDue(): Promise<'same' | 'renewed'> {
    const why = this.#whyRenew();
    if (why === undefined) return 'same';
    this.#pair = await issue(this.#deps, why);
    return 'renewed';
  }

  #whyRenew(): string | undefined {
    const { authority, clock, wanted } = this.#deps;
    if (!authority.hasSigned(this.#pair.certificatePem)) return 'another authority has signed it';
    return renewalReason(this.#pair.leaf, wanted(), clock.now());
  }
}

/** The pair, or why it is none. */
function readStored(text: string, from: string): KeyPair | string {
  try {
    return readKeyPair({ certificate: text, key: text, from });
  } catch (error) {
    return `it cannot be read: ${describeError(error)}`;
  }
}

async function issue(deps: IssuedCertificateDeps, why: string): Promise<KeyPair> {
  const { files, clock, log, authority, path, what, use, wanted } = deps;
  const key = newEcKey();
  const certificate = authority.issue({
    identity: wanted(),
    key,
    ...validityFrom(clock.now(), lifetimes.leaf, authority.leaf),
    uses: ['digital-signature'],
    extendedUses: [use],
  });
  await files.replace(path, certificate + keyPem(key), 0o600);
  log.info(`Made ${what}`, { file: path, why });
  return readKeyPair({ certificate, key: keyPem(key), from: path });
}
