import type { X509Certificate } from 'node:crypto';
import { constants } from 'node:crypto';
import { join } from 'node:path';
import type { SecureContextOptions, TlsOptions } from 'node:tls';
import { type Clock, HintLatch, KubelingError, type Logger, TypedEvents } from '../../lib/index.ts';
import type { Identity, KeyPair } from '../../protocols/x509/index.ts';
import { type AltNames, canonicalIp } from '../../protocols/x509/index.ts';
import { CertificateAuthority, IssuedCertificate } from './certificate-authority.ts';
import type { CredentialFiles } from './credential-files.ts';
import { type KubeconfigOptions, ManagedKubeconfig } from './kubeconfig.ts';
import { openTokenKeys, type TokenKeys } from './token-keys.ts';

export interface ServerCredentialsOptions {
  /** The directory of the credentials, private and owned by the API server. */
  readonly directory: string;
  readonly nodeName: string;
  /**
   * Names for the serving certificate besides loopback and the service names; read at each check.
   */
  readonly hostnames: () => readonly string[];
  readonly addresses: () => readonly string[];
  readonly clock: Clock;
  readonly files: CredentialFiles;
  readonly log: Logger;
}

/** The names of credentials that can be rotated. */
export type RotatedCredential = 'authority' | CredentialName;
type CredentialName = 'serving' | 'admin' | 'node';

export const adminName = 'kubeling-admin';
const checkIntervalMs = 60_000;

/**
 * The CA and the certificates it issues, each in one file:
 *
 *     ca.pem                 the CA, which signs:
 *       serving.pem          the certificate of the server
 *       admin.pem            the client certificate of the administrator's kubeconfig
 *       node.pem             the client certificate of the kubelet
 *     ca.crt                 the certificate of the CA, for clients and pods
 *     service-accounts.key   the key that signs tokens
 *
 * All are created once, renewed in the last third of their validity, and replaced if they are
 * expired, not yet valid or unreadable, at start and at runtime.
 */
export class ServerCredentials {
  readonly tokenKeys: TokenKeys;
  readonly #options: ServerCredentialsOptions;
  readonly #authority: CertificateAuthority;
  readonly #certificates: Readonly<Record<CredentialName, IssuedCertificate>>;
  readonly #events: TypedEvents<{ rotated: readonly RotatedCredential[] }>;
  readonly #kubeconfigs: ManagedKubeconfig[] = [];
  readonly #hint: HintLatch;
  #publicText: string | undefined;

  private constructor(options: ServerCredentialsOptions, opened: Opened) {
    this.#options = options;
    this.#authority = opened.authority;
    this.#certificates = opened.certificates;
    this.tokenKeys = opened.tokenKeys;
    this.#hint = new HintLatch(options.clock);
    this.#events = new TypedEvents((error) =>
      options.log.error('Certificate rotation listener failed', error),
    );
  }

  static async open(options: ServerCredentialsOptions): Promise<ServerCredentials> {
    const { files, directory, log } = options;
    await files.openDirectory(directory);
    const authority = await CertificateAuthority.open({ ...options, path: join(directory, 'ca.pem') });
    const pairs = {
      serving: await openCertificate(options, authority, 'serving'),
      admin: await openCertificate(options, authority, 'admin'),
      node: await openCertificate(options, authority, 'node'),
    };
    const tokenKeys = await openTokenKeys({ files, log, path: join(directory, 'service-accounts.key') });
    const authorities = new ServerCredentials(options, { authority, certificates: pairs, tokenKeys });
    await authorities.#writePublicCertificate();
    return authorities;
  }

  /** The CA certificate as PEM. */
  get authorityPem(): string {
    return this.#authority.pem;
  }

  get authorityCertificate(): X509Certificate {
    return this.#authority.certificate;
  }

  /** Whether the CA was loaded or created: certificates of a previous CA are invalid. */
  get origin(): 'kept' | 'made' {
    return this.#authority.origin;
  }

  /** The CA, for signing further certificates; see `createCertificateSigner`. */
  get authority(): Pick<CertificateAuthority, 'issue'> {
    return this.#authority;
  }

  pairOf(name: CredentialName): KeyPair {
    return this.#certificates[name].current;
  }

  /** The file with a certificate and its key, for clients that reload it. */
  fileOf(name: CredentialName): string {
    return join(this.#options.directory, `${name}.pem`);
  }

  /** Calls the listener with all credentials that one check has renewed, after they are written. */
  onRotated(listener: (what: readonly RotatedCredential[]) => void): Disposable {
    return this.#events.on('rotated', listener);
  }

  /** Writes the kubeconfig now and whenever its content changes or the file is deleted. */
  async maintainKubeconfig(options: KubeconfigOptions): Promise<void> {
    const kubeconfig = new ManagedKubeconfig(this.#options.files, options, () => ({
      authorityPem: this.authorityPem,
      pair: this.pairOf(options.user),
      file: this.fileOf(options.user),
    }));
    await kubeconfig.write();
    this.#kubeconfigs.push(kubeconfig);
  }

  /**
   * Requests a check of the credentials, for example after addresses have changed. Does not wait.
   */
  recheck(): void {
    this.#hint.raise();
  }

  /** Renews the credentials until aborted. A failed renewal keeps the old ones and is retried. */
  async run(signal: AbortSignal): Promise<never> {
    for (;;) {
      await this.#hint.wait(checkIntervalMs, signal);
      this.#hint.clear();
      await this.renewAll().catch((error) =>
        this.#options.log.error('Failed to renew the certificates of the API server', error),
      );
    }
  }

  /**
   * Checks all credentials once; `run` does it every minute, so that clock jumps are handled soon.
   */
  async renewAll(): Promise<void> {
    const rotated: RotatedCredential[] = [];
    try {
      if ((await this.#authority.renewIfDue()) === 'renewed') rotated.push('authority');
      for (const credential of ['serving', 'admin', 'node'] as const) {
        if ((await this.#certificates[credential].renewIfDue()) === 'renewed') rotated.push(credential);
      }
      await this.#writePublicCertificate();
      for (const kubeconfig of this.#kubeconfigs) await kubeconfig.rewriteIfChanged();
    } finally {
      // Renewed credentials are used even if another renewal has failed.
      if (rotated.length > 0) this.#events.emit('rotated', rotated);
    }
  }

  async #writePublicCertificate(): Promise<void> {
    const { files, directory } = this.#options;
    const path = join(directory, 'ca.crt');
    this.#publicText ??= await files.read(path);
    if (this.#publicText === this.authorityPem) return;
    await files.replace(path, this.authorityPem, 0o644);
    this.#publicText = this.authorityPem;
  }
}

/**
 * Opens or creates the credentials. Throws FILE_READ or FILE_WRITE if the directory is not usable.
 */
export async function openServerCredentials(options: ServerCredentialsOptions): Promise<ServerCredentials> {
  if (options.nodeName === '')
    throw new KubelingError('BUG', 'Cannot open the server credentials: the node name must not be empty');
  return await ServerCredentials.open(options);
}

interface Opened {
  readonly authority: CertificateAuthority;
  readonly certificates: Readonly<Record<CredentialName, IssuedCertificate>>;
  readonly tokenKeys: TokenKeys;
}

async function openCertificate(
  options: ServerCredentialsOptions,
  authority: CertificateAuthority,
  credential: CredentialName,
): Promise<IssuedCertificate> {
  const what = {
    serving: "the server's certificate",
    admin: "the admin's certificate",
    node: "the node's certificate",
  };
  return await IssuedCertificate.open({
    ...options,
    authority,
    path: join(options.directory, `${credential}.pem`),
    what: what[credential],
    use: credential === 'serving' ? 'server-auth' : 'client-auth',
    required: () => identityOf(credential, options),
  });
}

function identityOf(
  credential: CredentialName,
  { nodeName, hostnames, addresses }: ServerCredentialsOptions,
): Identity {
  const nameless = { dnsNames: [], ips: [] };
  if (credential === 'serving')
    return { commonName: 'kube-apiserver', organizations: [], ...servingNames(hostnames(), addresses()) };
  if (credential === 'admin')
    return { commonName: adminName, organizations: ['system:masters'], ...nameless };
  return { commonName: `system:node:${nodeName}`, organizations: ['system:nodes'], ...nameless };
}

/** The names that the serving certificate always has. */
const defaultNames = [
  'localhost',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
];
const loopback = ['127.0.0.1', '::1'];

/**
 * The alternative names of the serving certificate. Host names may be addresses; invalid names are
 * dropped.
 */
export function servingNames(hostnames: readonly string[], addresses: readonly string[]): AltNames {
  const given = [...hostnames, ...addresses].map((name) => name.trim().replace(/\.$/, ''));
  const ips = given.map(canonicalIp).filter((ip) => ip !== undefined);
  const names = given.filter((name) => canonicalIp(name) === undefined && isDnsName(name));
  return {
    dnsNames: [...new Set([...defaultNames, ...names.map((name) => name.toLowerCase())])],
    ips: [...new Set([...loopback, ...ips])],
  };
}

const label = /^[a-z0-9]([-a-z0-9_]{0,61}[a-z0-9])?$/i;

function isDnsName(name: string): boolean {
  return name.length <= 253 && name.split('.').every((part) => label.test(part));
}

/**
 * TLS session tickets are disabled, because a resumed session would keep an outdated client
 * authentication. Renegotiation is disabled because it is not needed.
 */
const secureOptions = constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION;

function secureContext(authorities: ServerCredentials): SecureContextOptions {
  const { certificatePem: cert, keyPem: key } = authorities.pairOf('serving');
  return { cert, key, ca: authorities.authorityPem, minVersion: 'TLSv1.2', secureOptions };
}

/** The TLS options of the server: client certificates are requested, but optional. */
export function tlsOptions(authorities: ServerCredentials): TlsOptions {
  return { ...secureContext(authorities), requestCert: true, rejectUnauthorized: false };
}

/** Configures a TLS server to use rotated certificates for new connections. */
export function followCertificates(
  server: { setSecureContext(options: SecureContextOptions): void },
  authorities: ServerCredentials,
): Disposable {
  return authorities.onRotated((what) => {
    if (what.includes('authority') || what.includes('serving'))
      server.setSecureContext(secureContext(authorities));
  });
}
