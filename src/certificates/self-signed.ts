import type { KeyObject } from 'node:crypto';
import { join } from 'node:path';
import type { NodeAddress } from '../kinds/index.ts';
import { apiTime, type Clock, KubelingError, type Logger } from '../lib/index.ts';
import {
  type AltNames,
  canonicalIp,
  createCertificate,
  type KeyKind,
  keyPem,
  type Leaf,
  missingFrom,
  newPrivateKey,
  readLeaves,
} from '../protocols/x509/index.ts';
import type { CertificateFiles } from './files.ts';
import { type PairFiles, PairReader } from './files.ts';
import { altNamesOf } from './node-identity.ts';

export interface SelfSignedDeps {
  readonly files: CertificateFiles;
  readonly clock: Clock;
  readonly log: Logger;
  readonly directory: string;
  readonly hostname: string;
  readonly addresses: () => readonly NodeAddress[];
  readonly keyKind: KeyKind;
}

const lifeMs = 365 * 86_400_000;
/** Certificates are valid from an hour ago, to tolerate clock skew. */
const backdatedMs = 3_600_000;
const renewAt = 0.8;
const roundMs = 60_000;
const debounceMs = 10_000;

export function selfSignedPaths(directory: string): PairFiles {
  return { certificateFile: join(directory, 'kubelet.crt'), keyFile: join(directory, 'kubelet.key') };
}

/**
 * Manages `kubelet.crt` and `kubelet.key`: creates them if they are missing, when most of their
 * lifetime is over, and when the node has new addresses. Replaces only files that a kubelet
 * created, never files of the administrator.
 */
export class SelfSignedFiles {
  readonly #deps: SelfSignedDeps;
  readonly #at: PairFiles;
  readonly #reader: PairReader;
  #missing: { readonly names: string; readonly sinceMs: number } | undefined;

  constructor(deps: SelfSignedDeps) {
    this.#deps = deps;
    this.#at = selfSignedPaths(deps.directory);
    this.#reader = new PairReader(deps.files, this.#at);
  }

  /**
   * Renews the files if due, and returns the delay until the next call. Throws if the files are
   * unusable and may not be replaced.
   */
  async renewIfDue(): Promise<number> {
    await this.#finishReplacement();
    const leaf = await this.#existing();
    if (leaf === 'none') return await this.#create('there is none');
    if (leaf === 'foreign') return roundMs;
    const { clock } = this.#deps;
    const renewMs = leaf.notBeforeMs + renewAt * (leaf.notAfterMs - leaf.notBeforeMs);
    if (clock.now() >= renewMs) return await this.#create(`it expires ${apiTime(leaf.notAfterMs)}`);
    const waitMs = this.#stableInMs(leaf);
    if (waitMs === 'nothing') return Math.min(roundMs, renewMs - clock.now());
    return waitMs > 0 ? waitMs : await this.#create(`it lacks ${this.#missing?.names ?? ''}`);
  }

  get #aside(): PairFiles {
    const { certificateFile, keyFile } = this.#at;
    return { certificateFile: `${certificateFile}.new`, keyFile: `${keyFile}.new` };
  }

  /**
   * Completes an interrupted replacement. The temporary certificate file is written and renamed after
   * the temporary key file. So as long as the temporary certificate file exists, the new key is
   * complete in its temporary or its final file.
   */
  async #finishReplacement(): Promise<void> {
    const { files } = this.#deps;
    const aside = this.#aside;
    const isKeyAside = (await files.kindAt(aside.keyFile)) !== undefined;
    if ((await files.kindAt(aside.certificateFile)) === undefined) {
      if (isKeyAside) await files.remove(aside.keyFile);
      return;
    }
    if (isKeyAside) await files.rename(aside.keyFile, this.#at.keyFile);
    await files.rename(aside.certificateFile, this.#at.certificateFile);
  }

  /** Reads the existing certificate. A damaged file that a kubelet created counts as missing. */
  async #existing(): Promise<Leaf | 'none' | 'foreign'> {
    const { files } = this.#deps;
    const { certificateFile, keyFile } = this.#at;
    const [certificate, key] = await Promise.all([files.read(certificateFile), files.read(keyFile)]);
    if (certificate === undefined && key === undefined) return 'none';
    if (certificate === undefined) throw incompletePair({ there: keyFile, missing: certificateFile });
    if (key === undefined) throw incompletePair({ there: certificateFile, missing: keyFile });
    try {
      const leaf = (await this.#reader.load())?.leaf;
      if (leaf === undefined) return 'none';
      return isKubeletMade(leaf) ? leaf : 'foreign';
    } catch (error) {
      const [leaf] = readLeaves(certificate, certificateFile);
      if (leaf !== undefined && isKubeletMade(leaf)) return 'none';
      throw error;
    }
  }

  /**
   * Returns the delay until new addresses have existed long enough to be added to the certificate.
   */
  #stableInMs(leaf: Leaf): number | 'nothing' {
    const required = this.#names();
    const { commonName, organizations } = leaf;
    const names = missingFrom(leaf, { commonName, organizations, ...required }).join(', ');
    const nowMs = this.#deps.clock.monotonicMs();
    if (names === '') {
      this.#missing = undefined;
      return 'nothing';
    }
    if (this.#missing?.names !== names) this.#missing = { names, sinceMs: nowMs };
    return this.#missing.sinceMs + debounceMs - nowMs;
  }

  #names(): AltNames {
    const { hostname, addresses } = this.#deps;
    const named = altNamesOf(addresses());
    const ip = canonicalIp(hostname);
    return {
      dnsNames: ip === undefined ? [...new Set([hostname, ...named.dnsNames])] : named.dnsNames,
      ips: ip === undefined ? named.ips : [...new Set([ip, ...named.ips])],
    };
  }

  async #create(why: string): Promise<number> {
    const { files, log, keyKind } = this.#deps;
    const key = await newPrivateKey(keyKind);
    const certificate = this.#certificate(key);
    // Once both temporary files exist, a restarted kubelet completes the replacement.
    await files.replace(this.#aside.keyFile, keyPem(key), 0o600);
    await files.replace(this.#aside.certificateFile, certificate, 0o644);
    await this.#finishReplacement();
    this.#missing = undefined;
    log.info('Created self-signed serving certificate', { file: this.#at.certificateFile, why });
    return roundMs;
  }

  #certificate(key: KeyObject): string {
    const { hostname, clock } = this.#deps;
    const nowMs = clock.now();
    const subject = { commonName: `${hostname}@${Math.floor(nowMs / 1_000)}`, organizations: [] };
    const notBeforeMs = nowMs - backdatedMs;
    const isRsa = key.asymmetricKeyType === 'rsa';
    return createCertificate(
      {
        identity: { ...subject, ...this.#names() },
        key,
        notBeforeMs,
        notAfterMs: notBeforeMs + lifeMs,
        uses: ['digital-signature', ...(isRsa ? (['key-encipherment'] as const) : [])],
        extendedUses: ['server-auth'],
        role: 'leaf',
      },
      { subject, key },
    );
  }
}

/**
 * Whether a kubelet created the certificate: its name is `name@seconds`, self-signed or signed by
 * the temporary CA that the Go kubelet creates for it.
 */
function isKubeletMade({ commonName, issuerName }: Leaf): boolean {
  const kubeletName = /@\d{9,}$/;
  return kubeletName.test(commonName) && (issuerName === commonName || /-ca@\d{9,}$/.test(issuerName));
}

function incompletePair({
  there,
  missing,
}: {
  readonly there: string;
  readonly missing: string;
}): KubelingError {
  return new KubelingError(
    'CERTIFICATE_INVALID',
    `Cannot serve with ${there} as ${missing} must exist too: restore it, or remove ${there} to have both created again`,
  );
}
