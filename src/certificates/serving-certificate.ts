import type { NodeAddress } from '../kinds/index.ts';
import { KubelingError } from '../lib/index.ts';
import type { KeyKind, KeyPair } from '../protocols/x509/index.ts';
import { CertificateManager } from './certificate-manager.ts';
import { CertificateStore } from './certificate-store.ts';
import type { CertificateDeps } from './client-certificate.ts';
import { FileCertificate } from './file-certificate.ts';
import { noObserver } from './metrics.ts';
import { servingIdentity } from './node-identity.ts';
import { CertificateRequester, PendingRequestFile } from './requester.ts';
import { SelfSignedFiles, selfSignedPaths } from './self-signed.ts';
import { type CsrApi, signers } from './signing-request.ts';

const serverPrefix = 'kubelet-server';
/**
 * How long addresses must be stable: they are reported one after the other when a node starts, and
 * one request covers all of them.
 */
const addressDebounceMs = 10_000;
const pollMs = 10_000;

/** The source of the serving certificate, selected by `servingSource`. */
export type ServingSource =
  | { readonly kind: 'cluster'; readonly api: CsrApi; readonly configured: ServingFiles | undefined }
  | { readonly kind: 'files'; readonly files: ServingFiles }
  | { readonly kind: 'self-signed'; readonly hostname: string; readonly keyKind: KeyKind };

export interface ServingFiles {
  readonly certificateFile: string;
  readonly keyFile: string;
}

export interface ServingSourceSettings {
  readonly serverTLSBootstrap: boolean;
  readonly tlsCertFile: string;
  readonly tlsPrivateKeyFile: string;
  /** The client for certificate requests; undefined without an API server. */
  readonly api: CsrApi | undefined;
  readonly hostname: string;
  readonly keyKind: KeyKind;
}

/**
 * Selects the source of the serving certificate. Throws CERTIFICATE_INVALID for contradictory
 * settings.
 */
export function servingSource(settings: ServingSourceSettings): ServingSource {
  const { tlsCertFile: certificateFile, tlsPrivateKeyFile: keyFile, api, hostname, keyKind } = settings;
  const [hasCertificate, hasKey] = [certificateFile !== '', keyFile !== ''];
  if (hasCertificate !== hasKey) {
    const [present, missing] = hasCertificate
      ? ['tlsCertFile', 'tlsPrivateKeyFile']
      : ['tlsPrivateKeyFile', 'tlsCertFile'];
    throw new KubelingError(
      'CERTIFICATE_INVALID',
      `Cannot serve with ${present} "${certificateFile}${keyFile}" as ${missing} must be set too: it is empty`,
    );
  }
  const files = hasCertificate ? { certificateFile, keyFile } : undefined;
  if (settings.serverTLSBootstrap && api !== undefined) return { kind: 'cluster', api, configured: files };
  if (files !== undefined) return { kind: 'files', files };
  return { kind: 'self-signed', hostname, keyKind };
}

export interface ServingSettings {
  readonly source: ServingSource;
  readonly nodeName: string;
  readonly certDirectory: string;
  /** Returns the current addresses of the node; call `refresh()` when they change. */
  readonly addresses: () => readonly NodeAddress[];
  /** How long addresses must be stable before a certificate is requested; 10 s by default. */
  readonly debounceMs?: number | undefined;
}

/** Opens the serving certificate of the kubelet. Throws if its files are unusable. */
export async function openServingCertificate(
  settings: ServingSettings,
  deps: CertificateDeps,
): Promise<ServedCertificate> {
  const { source, certDirectory, addresses } = settings;
  if (source.kind === 'cluster') return await openClusterIssued(settings, source, deps);
  if (source.kind === 'files') return await FileCertificate.open({ ...deps, at: source.files });
  const { hostname, keyKind } = source;
  const selfSigned = new SelfSignedFiles({ ...deps, directory: certDirectory, hostname, keyKind, addresses });
  return await FileCertificate.open({
    ...deps,
    at: selfSignedPaths(certDirectory),
    upkeep: () => selfSigned.renewIfDue(),
  });
}

async function openClusterIssued(
  { nodeName, certDirectory: directory, addresses, debounceMs = addressDebounceMs }: ServingSettings,
  { api, configured }: Extract<ServingSource, { kind: 'cluster' }>,
  { files, clock, random, log, observer = noObserver }: CertificateDeps,
): Promise<CertificateManager> {
  const store = await CertificateStore.open({
    files,
    clock,
    log,
    directory,
    prefix: serverPrefix,
    configured,
  });
  return new CertificateManager({
    name: 'serving',
    store,
    requester: new CertificateRequester({
      api: () => api,
      signerName: signers.server,
      usages: ['digital signature', 'server auth'],
      store,
      pending: new PendingRequestFile(files, store),
      clock,
      random,
      log,
    }),
    required: () => servingIdentity(nodeName, addresses()),
    clock,
    random,
    log,
    observer,
    debounceMs,
    pollMs,
    first: { pair: await store.load(), action: 'keep' },
  });
}

/** A serving certificate that is renewed in time, whatever its source. */
export interface ServedCertificate {
  /** Returns the valid certificate and key to use; undefined while there is none. */
  current(): KeyPair | undefined;
  /** Returns the current certificate and key, even if expired. */
  held(): KeyPair | undefined;
  /**
   * Calls the listener with each new pair once it is in use; the listener should close connections
   * that use the old pair.
   */
  onRotated(listener: (pair: KeyPair) => void): Disposable;
  /**
   * Notifies the certificate that names or addresses of the node may have changed. Never blocks.
   */
  refresh(): void;
  /** Returns why there is no valid certificate, with the remedy; undefined while there is one. */
  problem(): string | undefined;
  /** Describes the state of the certificate in one line. */
  describe(): string;
  /** Renews the certificate until aborted. Must not be called again while it runs. */
  run(signal: AbortSignal): Promise<never>;
}
