import { createHash, X509Certificate } from 'node:crypto';
import { watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { type Clock, describeError, KubelingError, type Logger } from '../../lib/index.ts';
import { checkChain, isValidAt, type ValidityPeriod } from '../../protocols/x509/index.ts';
import type { Authentication, Authenticator, PeerCertificate, User } from './identity.ts';

/** The CA bundle for client certificates. It is immutable: a changed file creates a new bundle. */
export interface CaBundle {
  readonly pem: string;
  readonly certificates: readonly X509Certificate[];
}

/** Returns the current CA bundle. */
export interface ClientCa {
  current(): CaBundle;
  /** Calls the listener after each change of the bundle, until it is disposed. */
  onChange(listener: () => void): Disposable;
}

/** The file that contains the client CA bundle. */
export interface CaFile {
  readonly path: string;
  read(): Promise<string>;
  /**
   * Calls `hint` when the file may have changed; changes without a call are found by polling within
   * a minute.
   */
  watch(hint: () => void): Disposable;
}

export interface ClientCaDeps {
  readonly file: CaFile;
  readonly clock: Clock;
  readonly logger: Logger;
}

const recheckMs = 60_000;
/** Delay after a change before the file is read, because it may still be written. */
const debounceMs = 100;

/**
 * A client CA bundle that is reloaded when its file changes. With invalid content the last good
 * bundle stays in effect.
 */
export class ClientCaFile implements ClientCa, Disposable {
  readonly #deps: ClientCaDeps;
  readonly #listeners = new Set<() => void>();
  #bundle: CaBundle;
  #watch: Disposable | undefined;
  #timer: Disposable | undefined;
  #hint: Disposable | undefined;
  #isClosed = false;
  /** Digest of the last rejected file content, so that it is logged only once. */
  #rejected: string | undefined;

  /**
   * Opens the client CA file. Rejects when it is unreadable or contains no certificate, because no
   * client could be authenticated.
   */
  static async open(deps: ClientCaDeps): Promise<ClientCaFile> {
    const ca = new ClientCaFile(deps, parseBundle(deps.file.path, await readBundle(deps.file)));
    ca.#watch = deps.file.watch(() => ca.#onHint());
    ca.#arm();
    return ca;
  }

  private constructor(deps: ClientCaDeps, bundle: CaBundle) {
    this.#deps = deps;
    this.#bundle = bundle;
  }

  current(): CaBundle {
    return this.#bundle;
  }

  onChange(listener: () => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    for (const each of [this.#watch, this.#timer, this.#hint]) each?.[Symbol.dispose]();
  }

  #onHint(): void {
    if (this.#isClosed) return;
    this.#hint ??= this.#deps.clock.timer(debounceMs, () => {
      this.#hint = undefined;
      void this.#reload();
    });
  }

  #arm(): void {
    if (this.#isClosed) return;
    this.#timer = this.#deps.clock.timer(recheckMs, () => {
      void this.#reload();
      this.#arm();
    });
  }

  async #reload(): Promise<void> {
    const { file, logger } = this.#deps;
    try {
      const pem = await readBundle(file);
      if (this.#isClosed || pem === this.#bundle.pem) return;
      this.#bundle = parseBundle(file.path, pem);
      this.#rejected = undefined;
      logger.info('Reloaded client CA bundle', { file: file.path });
      for (const listener of this.#listeners) listener();
    } catch (error) {
      const why = describeError(error);
      if (why === this.#rejected) return;
      this.#rejected = why;
      logger.error('Failed to reload client CA bundle, keeping the current one', error, { file: file.path });
    }
  }
}

async function readBundle(file: CaFile): Promise<string> {
  try {
    return await file.read();
  } catch (cause) {
    throw new KubelingError('CLIENT_CA', `Cannot read the client CA bundle from ${file.path}`, {
      cause,
    });
  }
}

const block = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

function parseBundle(path: string, pem: string): CaBundle {
  const blocks = pem.match(block) ?? [];
  const count = pem.split('-----BEGIN CERTIFICATE-----').length - 1;
  if (count === 0) {
    throw new KubelingError(
      'CLIENT_CA',
      `Cannot use the client CA bundle ${path}: it contains no certificate`,
    );
  }
  try {
    if (blocks.length !== count)
      throw new Error('a PEM block has no end line, or contains characters other than base64');
    return { pem, certificates: blocks.map((each) => new X509Certificate(each)) };
  } catch (cause) {
    throw new KubelingError(
      'CLIENT_CA',
      `Cannot use the client CA bundle ${path}: a certificate is invalid`,
      {
        cause,
      },
    );
  }
}

/**
 * A client CA file of this machine. Its directory is watched, because files are usually replaced
 * instead of written.
 */
export function caFile(path: string): CaFile {
  return {
    path,
    read: () => readFile(path, 'utf8'),
    watch(hint) {
      try {
        // Changes of any file name are reported, because a mounted secret changes through a
        // symbolic link of another name in the directory.
        const watcher = watch(dirname(path), { persistent: false }, (_event, name) => {
          if (name === null || name === basename(path) || name.startsWith('..')) hint();
        });
        watcher.on('error', () => watcher.close());
        return { [Symbol.dispose]: () => watcher.close() };
      } catch {
        return { [Symbol.dispose]: () => {} };
      }
    },
  };
}

export interface X509Deps {
  readonly ca: Pick<ClientCa, 'current'>;
  readonly clock: Pick<Clock, 'now'>;
}

const credentialId = 'authentication.kubernetes.io/credential-id';
const uidName = '1.3.6.1.4.1.57683.2';

/**
 * The cached verification result of a client certificate, with the CA bundle for which it is valid
 * and the period in which it is valid.
 */
interface VerifiedCertificate {
  readonly bundle: CaBundle;
  readonly time: ValidityPeriod;
}

/**
 * Authenticates clients by their certificate. Connections are long-lived, so each request is
 * checked: TLS must have verified the client at the handshake, and the current bundle must verify
 * it now.
 */
export function x509Authenticator({ ca, clock }: X509Deps): Authenticator {
  // Verification results, keyed by the certificate object, which exists as long as its connection.
  const known = new WeakMap<X509Certificate, VerifiedCertificate>();
  const problem = ({ chain, verdict }: PeerCertificate, own: X509Certificate): string | undefined => {
    if (verdict.kind === 'untrusted') return verdict.why;
    const [bundle, now] = [ca.current(), clock.now()];
    const before = known.get(own);
    if (before?.bundle === bundle && isValidAt(before.time, now)) return undefined;
    const found = checkChain(chain, bundle.certificates, now);
    if (found.kind === 'stranger') return found.why;
    known.set(own, { bundle, time: found.time });
    return undefined;
  };
  return {
    authenticate({ certificate }) {
      const own = certificate?.chain[0];
      if (certificate === undefined || own === undefined) return { kind: 'none' };
      const why = problem(certificate, own);
      return why === undefined ? userOf(own) : failed(own, why);
    },
  };
}

function failed(certificate: X509Certificate, why: string): Authentication {
  const details = { serialNumber: certificate.serialNumber, subject: certificate.subject };
  return {
    kind: 'failed',
    error: new KubelingError('AUTH_FAILED', `Cannot trust the certificate of a client: ${why}`, { details }),
  };
}

/**
 * Maps a certificate to a user: the common name is the user, the organizations are the groups.
 * Without a common name there is no user.
 */
function userOf(certificate: X509Certificate): Authentication {
  const subject = certificate.toLegacyObject().subject as unknown as Readonly<Record<string, unknown>>;
  const [names, uids] = [texts(subject['CN']), texts(subject[uidName])];
  const [name = ''] = names;
  if (names.length > 1) return failed(certificate, 'it has more than one common name');
  if (uids.length > 1 || uids[0] === '')
    return failed(certificate, 'it must have one UID that is not empty, or none');
  if (name === '') return { kind: 'none' };
  const hash = createHash('sha256').update(certificate.raw).digest('hex');
  const user: User = {
    name,
    uid: uids[0],
    groups: texts(subject['O']),
    extra: { [credentialId]: [`X509SHA256=${hash}`] },
  };
  return { kind: 'user', user };
}

function texts(value: unknown): readonly string[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value.map(String) : [String(value)];
}
