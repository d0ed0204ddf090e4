import { apiTime, type Clock, KubelingError, type Logger, type Random } from '../lib/index.ts';
import { isExpired, type KeyPair, readKeyPair } from '../protocols/x509/index.ts';
import { CertificateManager } from './certificate-manager.ts';
import { CertificateStore } from './certificate-store.ts';
import type { CertificateFiles, PairFiles } from './files.ts';
import { noObserver, type RotationObserver } from './metrics.ts';
import { clientIdentity } from './node-identity.ts';
import { CertificateRequester, PendingRequestFile } from './requester.ts';
import { type CsrApi, signers } from './signing-request.ts';

export const clientPrefix = 'kubelet-client';
const pollMs = 5 * 60_000;

export interface CertificateDeps {
  readonly files: CertificateFiles;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly observer?: RotationObserver | undefined;
}

/** The certificate in the kubeconfig or in the file it names. */
export type KubeconfigCertificate =
  | { readonly kind: 'inline'; readonly certificate: string; readonly key: string; readonly from: string }
  | ({ readonly kind: 'files' } & PairFiles);

export interface ClientCertificateSettings {
  readonly nodeName: string;
  readonly certDirectory: string;
  readonly kubeconfig: KubeconfigCertificate | undefined;
  /**
   * Creates a client that uses the current certificate, or the bootstrap kubeconfig if there is
   * none.
   */
  readonly api: (current: KeyPair | undefined) => CsrApi;
}

/**
 * Opens the client certificate of a node that rotates it (`rotateCertificates`). Starts with the
 * newest valid one of store and kubeconfig; a certificate embedded in the kubeconfig is replaced
 * immediately, because copies of it may exist.
 */
export async function openClientCertificate(
  settings: ClientCertificateSettings,
  deps: CertificateDeps,
): Promise<CertificateManager> {
  const { files, clock, random, log, observer = noObserver } = deps;
  const { certDirectory: directory, kubeconfig, nodeName, api } = settings;
  const configured = kubeconfig?.kind === 'files' ? kubeconfig : undefined;
  const store = await CertificateStore.open({
    files,
    clock,
    log,
    directory,
    prefix: clientPrefix,
    configured,
  });
  const pending = new PendingRequestFile(files, store);
  const required = { kind: 'ready', identity: clientIdentity(nodeName) } as const;
  return new CertificateManager({
    name: 'client',
    store,
    requester: new CertificateRequester({
      api,
      signerName: signers.client,
      usages: ['digital signature', 'client auth'],
      store,
      pending,
      clock,
      random,
      log,
    }),
    required: () => required,
    clock,
    random,
    log,
    observer,
    debounceMs: 0,
    pollMs,
    first: await firstPair(store, kubeconfig, deps),
  });
}

interface FirstPair {
  readonly pair: KeyPair | undefined;
  readonly action: 'keep' | 'replace';
}

async function firstPair(
  store: CertificateStore,
  kubeconfig: KubeconfigCertificate | undefined,
  { clock, log }: CertificateDeps,
): Promise<FirstPair> {
  const stored = await store.load();
  const embedded = kubeconfig?.kind === 'inline' ? inlinePair(kubeconfig, log) : undefined;
  const nowMs = clock.now();
  if (embedded === undefined || isExpired(embedded.leaf, nowMs) || !isNewer(embedded, stored, nowMs)) {
    if (stored !== undefined && isExpired(stored.leaf, nowMs)) warnExpired(stored, log);
    return { pair: stored, action: 'keep' };
  }
  // The certificate is stored for other programs too; kubeling uses it even if storing it fails.
  const pair = await store.update(embedded.certificatePem, embedded.keyPem).catch((error) => {
    log.error('Failed to store certificate of the kubeconfig', error);
    return embedded;
  });
  return { pair, action: 'replace' };
}

function isNewer(embedded: KeyPair, stored: KeyPair | undefined, nowMs: number): boolean {
  if (stored === undefined || isExpired(stored.leaf, nowMs)) return true;
  return embedded.leaf.notBeforeMs > stored.leaf.notBeforeMs;
}

function inlinePair(
  embedded: Extract<KubeconfigCertificate, { kind: 'inline' }>,
  log: Logger,
): KeyPair | undefined {
  try {
    return readKeyPair(embedded);
  } catch (error) {
    log.error('Ignored unusable certificate of the kubeconfig', error);
    return undefined;
  }
}

function warnExpired({ leaf, from }: KeyPair, log: Logger): void {
  log.warn(
    `Client certificate in ${from} expired ${apiTime(leaf.notAfterMs)}, requesting a new one; if none is issued, join the node again with a new bootstrap token`,
  );
}

export interface CredentialGuardDeps {
  readonly certificate: {
    held(): KeyPair | undefined;
    readonly serverResponds: boolean;
    describe(): string;
  };
  readonly clock: Clock;
  readonly log: Logger;
}

const roundMs = 10_000;
const firstRoundMs = 1_000;
const longestWithoutMs = 5 * 60_000;

/**
 * Exits with CERTIFICATE_LOST when the node has lost its identity: its client certificate has
 * expired, or has been missing for five minutes, and the reachable API server issues none. A
 * restarted kubelet may use its bootstrap kubeconfig. While the server is unreachable the kubelet
 * does not exit, and pods keep running.
 */
export async function guardCredentials(deps: CredentialGuardDeps, signal: AbortSignal): Promise<never> {
  const { certificate, clock, log } = deps;
  let lastSeenMs = clock.monotonicMs();
  let warned = '';
  for (;;) {
    await clock.sleep(certificate.held() === undefined ? firstRoundMs : roundMs, signal);
    const held = certificate.held();
    if (held !== undefined && !isExpired(held.leaf, clock.now())) {
      lastSeenMs = clock.monotonicMs();
      warned = '';
    }
    const why = lostReason(held, clock.now(), clock.monotonicMs() - lastSeenMs);
    if (why === undefined) continue;
    const message = `Cannot continue as ${why}, and the API server issues no new one: ${certificate.describe()}. Join the node again if its bootstrap token has expired too`;
    if (certificate.serverResponds) throw new KubelingError('CERTIFICATE_LOST', message);
    if (warned !== why) log.warn(`Requests will fail until the API server is reachable, as ${why}`);
    warned = why;
  }
}

function lostReason(held: KeyPair | undefined, nowMs: number, withoutMs: number): string | undefined {
  if (held === undefined) {
    return withoutMs > longestWithoutMs ? 'there is no client certificate' : undefined;
  }
  return isExpired(held.leaf, nowMs)
    ? `the client certificate in ${held.from} expired ${apiTime(held.leaf.notAfterMs)}`
    : undefined;
}
