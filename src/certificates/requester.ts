import { join } from 'node:path';
import {
  apiTime,
  type Clock,
  cancelledError,
  KubelingError,
  LinkedController,
  type Logger,
  type Random,
  withDeadline,
} from '../lib/index.ts';
import {
  createCertificateRequest,
  type Identity,
  isExpired,
  type KeyPair,
  keyPem,
  missingFrom,
  newEcKey,
  readKeyPair,
} from '../protocols/x509/index.ts';
import type { CertificateStore } from './certificate-store.ts';
import type { CertificateFiles } from './files.ts';
import type { CsrRef } from './signing-request.ts';
import { type CsrApi, type CsrState, createSigningRequest, waitForCertificate } from './signing-request.ts';

export interface RequesterDeps {
  /** Creates a client that uses the current credentials. */
  readonly api: (current: KeyPair | undefined) => CsrApi;
  readonly signerName: string;
  readonly usages: readonly string[];
  readonly store: CertificateStore;
  readonly pending: PendingRequestFile;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

export interface CertificateDemand {
  readonly identity: Identity;
  readonly current: KeyPair | undefined;
  readonly onStatus: (standing: RequestStatus) => void;
  /**
   * Resolves when a different certificate is required, so that waiting for the requested one is
   * useless.
   */
  readonly outdated: (signal: AbortSignal) => Promise<void>;
}

/** The pending signing request and its state. */
export interface RequestStatus {
  readonly csr: string;
  readonly sinceMs: number;
  readonly state: CsrState['kind'];
}

const longestWaitMs = 15 * 60_000;

/**
 * Obtains one certificate from the cluster: creates a key and a signing request, waits for the
 * signer, stores the result.
 */
export class CertificateRequester {
  readonly #deps: RequesterDeps;
  #pending: PendingRequest | undefined;

  constructor(deps: RequesterDeps) {
    this.#deps = deps;
  }

  /**
   * Obtains a certificate. Rejects with CANCELLED when a different identity is required. A pending
   * request that still matches is reused, also one of an earlier process or of the Go kubelet. So
   * if the issued certificate cannot be stored because the disk is full, it is not requested a
   * second time.
   */
  async request(demand: CertificateDemand, signal: AbortSignal): Promise<KeyPair> {
    const { store } = this.#deps;
    await store.expectLinks();
    const request = (await this.#reusable(demand)) ?? (await this.#create(demand, signal));
    const certificate = await this.#obtain(demand, request, signal);
    const pair = await store.update(certificate, request.keyPem);
    await this.#forget();
    return pair;
  }

  /**
   * Waits for the signer. If the kubelet exits meanwhile, the restarted kubelet finds the pending
   * request on disk; if the wait fails for any other reason, the stored request is deleted.
   */
  async #obtain(demand: CertificateDemand, request: PendingRequest, signal: AbortSignal): Promise<string> {
    const { clock } = this.#deps;
    const { name } = request.ref;
    const ms = Math.max(0, request.requestedMs + longestWaitMs - clock.now());
    const what = `get a certificate by the certificate signing request ${name}`;
    try {
      const waiting = (limited: AbortSignal) => this.#wait(demand, request, limited);
      const certificate = await withDeadline({ clock, ms, what }, waiting, signal);
      checkAnswer(certificate, request, clock.now());
      return certificate;
    } catch (error) {
      if (!signal.aborted) await this.#forget();
      throw error;
    }
  }

  async #forget(): Promise<void> {
    this.#pending = undefined;
    const { pending, log } = this.#deps;
    await pending
      .clear()
      .catch((error) => log.error('Failed to delete stored certificate signing request', error));
  }

  async #reusable({ identity }: CertificateDemand): Promise<PendingRequest | undefined> {
    const { pending, clock, log } = this.#deps;
    const request = this.#pending ?? (await pending.read());
    if (request === undefined) return undefined;
    const ageMs = clock.now() - request.requestedMs;
    const isUseful =
      ageMs >= 0 && ageMs < longestWaitMs && missingFrom(request.identity, identity).length === 0;
    if (!isUseful) return undefined;
    log.info('Waiting for pending certificate signing request', { csr: request.ref.name });
    return request;
  }

  async #create({ identity, current }: CertificateDemand, signal: AbortSignal): Promise<PendingRequest> {
    const { api, signerName, usages, pending, clock, log } = this.#deps;
    const key = newEcKey();
    const content = { requestPem: createCertificateRequest(identity, key), signerName, usages };
    const ref = await createSigningRequest(api(current), content, signal);
    log.info('Created certificate signing request', { csr: ref.name, signerName });
    const request = { ref, identity, keyPem: keyPem(key), requestedMs: clock.now() };
    this.#pending = request;
    // A failure is not fatal: without the file, a restarted kubelet creates another request.
    await pending
      .write(request)
      .catch((error) => log.error('Failed to store certificate signing request', error));
    return request;
  }

  async #wait(
    demand: CertificateDemand,
    { ref, requestedMs }: PendingRequest,
    signal: AbortSignal,
  ): Promise<string> {
    const { api, clock, random, log } = this.#deps;
    using controller = new LinkedController(signal);
    const giveUp = () =>
      controller.abort(cancelledError(`Another identity than that of ${ref.name} is required`));
    const report = (state: CsrState['kind']) =>
      demand.onStatus({ csr: ref.name, sinceMs: requestedMs, state });
    report('pending');
    const outdated = demand.outdated(controller.signal).then(giveUp, () => {});
    try {
      const onState = (state: CsrState) => report(state.kind);
      const deps = { api: api(demand.current), clock, random, log, onState };
      return await waitForCertificate(deps, ref, controller.signal);
    } finally {
      controller.abort(cancelledError('The wait for the certificate has ended'));
      await outdated;
    }
  }
}

/**
 * Checks the issued certificate. A certificate that is already expired is rejected, because it
 * would be requested over and over.
 */
function checkAnswer(certificate: string, { keyPem: key, ref }: PendingRequest, nowMs: number): void {
  const from = `the certificate signing request ${ref.name}`;
  const { leaf } = readKeyPair({ certificate, key, from });
  if (!isExpired(leaf, nowMs)) return;
  throw new KubelingError(
    'CERTIFICATE_NOT_ISSUED',
    `Cannot use the certificate of ${from} as it expired ${apiTime(leaf.notAfterMs)} and the time here is ${apiTime(nowMs)}: check the clocks of this node and of the control plane`,
  );
}

/**
 * A pending signing request with its private key, which exists only in this process and its file.
 */
export interface PendingRequest {
  readonly ref: CsrRef;
  readonly identity: Identity;
  readonly keyPem: string;
  readonly requestedMs: number;
}

/**
 * Stores the pending signing request on disk, so that a restarted kubelet keeps waiting for it
 * instead of creating another. An unreadable file counts as missing.
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
