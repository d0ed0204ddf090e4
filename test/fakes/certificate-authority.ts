import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A certificate with its chain, and its private key; both in PEM. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateWish {
  /** The subject in openssl's form: `/O=group/CN=user`. */
  readonly subject: string;
  readonly use?: 'clientAuth' | 'serverAuth' | 'authority';
  /** The validity in days; negative for an expired certificate. */
  readonly days?: number;
  readonly san?: string;
}

const dayMs = 86_400_000;
const issuingConfig = 'issuing.conf';

/** Formats a time for `openssl ca`: `20260102030405Z`. */
function opensslTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replaceAll(/[-:T]/g, '')}Z`;
}

/**
 * Creates certificates with the openssl of this machine in a directory, which is removed when the
 * object is disposed.
 */
export class CertificateFolder implements Disposable {
  readonly #directory = mkdtempSync(join(tmpdir(), 'kubeling-ca-'));
  #made = 0;

  constructor() {
    const settings = [
      'database = issued.txt',
      'new_certs_dir = .',
      'default_md = sha256',
      'unique_subject = no',
      'rand_serial = yes',
    ];
    const config = ['[ca]', 'default_ca = any', '[any]', ...settings, 'preserve = yes', 'policy = names'];
    const policy = ['[names]', 'commonName = optional', 'organizationName = optional'];
    writeFileSync(join(this.#directory, issuingConfig), `${[...config, ...policy].join('\n')}\n`);
    writeFileSync(join(this.#directory, 'issued.txt'), '');
  }

  get directory(): string {
    return this.#directory;
  }

  authority(subject: string): Authority {
    const name = this.#name();
    this.#openssl(
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'],
      ...['-subj', subject, '-keyout', `${name}.key`, '-out', `${name}.pem`],
    );
    return new Authority(this, name, '');
  }

  /** Imports a CA from one text with its certificate and key. */
  adopt(pem: string): Authority {
    const name = this.#name();
    const [certificate = ''] = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/.exec(pem) ?? [];
    writeFileSync(join(this.#directory, `${name}.pem`), certificate);
    writeFileSync(join(this.#directory, `${name}.key`), pem, { mode: 0o600 });
    return new Authority(this, name, '');
  }

  /** Issues a certificate signed by a CA of this directory. */
  issue(by: string, { subject, use = 'clientAuth', days = 2, san }: CertificateWish): string {
    const name = this.#name();
    const uses =
      use === 'authority'
        ? 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n'
        : `basicConstraints=critical,CA:FALSE\nextendedKeyUsage=${use}\n`;
    writeFileSync(
      join(this.#directory, `${name}.ext`),
      `${uses}${san === undefined ? '' : `subjectAltName=${san}\n`}`,
    );
    this.#openssl(
      ...['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', subject],
      ...['-keyout', `${name}.key`, '-out', `${name}.csr`],
    );
    // Uses `openssl ca` instead of `openssl x509`, which since version 3.4 cannot issue expired
    // certificates.
    const now = Date.now();
    this.#openssl(
      ...['ca', '-batch', '-notext', '-config', issuingConfig, '-in', `${name}.csr`, '-out', `${name}.pem`],
      ...['-cert', `${by}.pem`, '-keyfile', `${by}.key`, '-extfile', `${name}.ext`],
      ...['-startdate', opensslTime(now + Math.min(0, 2 * days * dayMs))],
      ...['-enddate', opensslTime(now + days * dayMs)],
    );
    return name;
  }

  read(file: string): string {
    return readFileSync(join(this.#directory, file), 'utf8');
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #name(): string {
    this.#made += 1;
    return `c${this.#made}`;
  }

  #openssl(...args: readonly string[]): void {
    execFileSync('openssl', args, { cwd: this.#directory, stdio: 'pipe' });
  }
}

export class Authority {
  readonly #folder: CertificateFolder;
  readonly #name: string;
  readonly #behind: string;

  constructor(folder: CertificateFolder, name: string, behind: string) {
    this.#folder = folder;
    this.#name = name;
    this.#behind = behind;
  }

  get pem(): string {
    return this.#folder.read(`${this.#name}.pem`);
  }

  issue(options: CertificateWish): KeyPair {
    const name = this.#folder.issue(this.#name, options);
    return { cert: this.#folder.read(`${name}.pem`) + this.#behind, key: this.#folder.read(`${name}.key`) };
  }

  /**
   * Issues a certificate signed by this CA, by default for an intermediate CA, and returns the
   * certificate as an authority. The certificates that the returned authority issues include the
   * authority's own certificate in their chain.
   */
  intermediate(subject: string, use: NonNullable<CertificateWish['use']> = 'authority'): Authority {
    const name = this.#folder.issue(this.#name, { subject, use });
    return new Authority(this.#folder, name, this.#folder.read(`${name}.pem`) + this.#behind);
  }
}
