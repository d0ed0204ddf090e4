import { join } from 'node:path';
import type { Identity } from '../protocols/x509/index.ts';
import type { CertificateFiles } from './files.ts';
import type { CsrRef } from './signing-request.ts';

/** A pending request with its key, which exists only here. */
export interface PendingRequest {
  readonly ref: CsrRef;
  readonly identity: Identity;
  readonly keyPem: string;
  readonly requestedMs: number;
}

/**
 * The pending request on disk, so that a restarted kubelet keeps waiting instead of requesting
 * again. An unreadable file counts as missing.
 */
export class PendingRequestFile {
  readonly #files: CertificateFiles;
  readonly #path: string;

  constructor(files: CertificateFiles, at: { readonly directory: string; readonly prefix: string }) {
    this.#files = files;
    this.#path = join(at.directory, `${at.prefix}-request.json`);
  }

  async read(): Promise<PendingRequest | undefined> {
    try {
      return asPending(JSON.parse((await this.#files.read(this.#path)) ?? 'null'));
    } catch {
      return undefined;
    }
  }

  async write(request: PendingRequest): Promise<void> {
    await this.#files.replace(this.#path, `${JSON.stringify(request)}\n`, 0o600);
  }

  async clear(): Promise<void> {
    await this.#files.remove(this.#path);
  }
}

function asPending(value: unknown): PendingRequest | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { ref, identity, keyPem, requestedMs } = value as Partial<PendingRequest>;
  const isIdentity =
    typeof identity?.commonName === 'string' &&
    [identity.organizations, identity.dnsNames, identity.ips].every(Array.isArray);
  const isRef = [ref?.name, ref?.uid, ref?.version].every((part) => typeof part === 'string');
  const isWhole = isIdentity && isRef && typeof keyPem === 'string' && Number.isFinite(requestedMs);
  return isWhole ? (value as PendingRequest) : undefined;
}
