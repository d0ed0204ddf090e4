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
  type Identity,
  isExpired,
  type KeyPair,
  keyPem,
  lackingOf,
  makeCertificateRequest,
  newEcKey,
  readKeyPair,
} from '../protocols/x509/index.ts';
import type { CertificateStore } from './certificate-store.ts';
import type { PendingRequest, PendingRequestFile } from './pending-request.ts';
import { type CsrApi, type CsrState, createSigningRequest, waitForCertificate } from './signing-request.ts';

export interface RequesterDeps {
  /** The API to ask, as whoever we are now. */
  readonly api: (current: KeyPair | undefined) => CsrApi;
  readonly signerName: string;
  readonly usages: readonly string[];
  readonly store: CertificateStore;
  readonly pending: PendingRequestFile;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

export interface Asking {
  readonly wanted: Identity;
  readonly current: KeyPair | undefined;
  readonly seen: (standing: Standing) => void;
  /** Resolves when it is not worth waiting any more. */
  readonly outgrown: (signal: AbortSignal) => Promise<void>;
}

/** Where the request stands. */
export interface Standing {
  readonly csr: string;
  readonly sinceMs: number;
  readonly state: CsrState['kind'];
}

const longestWaitMs = 15 * 60_000;

/** Gets one certificate from the cluster: a new key, a request, the wait for its signer, the store. */
export class CertificateRequester {
  readonly #deps: RequesterDeps;
  #unanswered: PendingRequest | undefined;

  constructor(deps: RequesterDeps) {
    this.#deps = deps;
  }

  /**
   * Fails with CANCELLED when it was outgrown. What was asked for earlier, also by another kubelet, and still fits is
   * waited for: a disk that is full for a while costs no second request.
   */
  async request(asking: Asking, signal: AbortSignal): Promise<KeyPair> {
    const { store } = this.#deps;
    await store.expectLinks();
    const request = (await this.#earlier(asking)) ?? (await this.#ask(asking, signal));
    const certificate = await this.#answer(asking, request, signal);
    const pair = await store.update(certificate, request.keyPem);
    await this.#forget();
    return pair;
  }

  /** Killed on the way the request is still there for the next kubelet; ended in any other way it is of no more use. */
  async #answer(asking: Asking, request: PendingRequest, signal: AbortSignal): Promise<string> {
    const { clock } = this.#deps;
    const { name } = request.ref;
    const ms = Math.max(0, request.requestedMs + longestWaitMs - clock.now());
    const what = `get a certificate by the certificate signing request ${name}`;
    try {
      const waiting = (limited: AbortSignal) => this.#wait(asking, request, limited);
      const certificate = await withDeadline({ clock, ms, what }, waiting, signal);
      checkAnswer(certificate, request, clock.now());
      return certificate;
    } catch (error) {
      if (!signal.aborted) await this.#forget();
      throw error;
    }
  }

  async #forget(): Promise<void> {
    this.#unanswered = undefined;
    const { pending, log } = this.#deps;
    await pending.clear().catch((error) => log.error('Cannot forget the certificate signing request', error));
  }

  async #earlier({ wanted }: Asking): Promise<PendingRequest | undefined> {
    const { pending, clock, log } = this.#deps;
    const request = this.#unanswered ?? (await pending.read());
    if (request === undefined) return undefined;
    const ageMs = clock.now() - request.requestedMs;
    const isUseful = ageMs >= 0 && ageMs < longestWaitMs && lackingOf(request.identity, wanted).length === 0;
    if (!isUseful) return undefined;
    log.info('Waiting on for a certificate that was asked for earlier', { csr: request.ref.name });
    return request;
  }

  async #ask({ wanted, current }: Asking, signal: AbortSignal): Promise<PendingRequest> {
    const { api, signerName, usages, pending, clock, log } = this.#deps;
    const key = newEcKey();
    const wish = { requestPem: makeCertificateRequest(wanted, key), signerName, usages };
    const ref = await createSigningRequest(api(current), wish, signal);
    log.info('Asked for a certificate', { csr: ref.name, signerName });
    const request = { ref, identity: wanted, keyPem: keyPem(key), requestedMs: clock.now() };
    this.#unanswered = request;
    // Not worth failing for: without the file a restart only asks once more.
    await pending
      .write(request)
      .catch((error) => log.error('Cannot note the certificate signing request', error));
    return request;
  }

  async #wait(asking: Asking, { ref, requestedMs }: PendingRequest, signal: AbortSignal): Promise<string> {
    const { api, clock, random, log } = this.#deps;
    using controller = new LinkedController(signal);
    const giveUp = () =>
      controller.abort(cancelledError(`Something else than ${ref.name} asks for is wanted`));
    const tell = (state: CsrState['kind']) => asking.seen({ csr: ref.name, sinceMs: requestedMs, state });
    tell('pending');
    const outgrown = asking.outgrown(controller.signal).then(giveUp, () => {});
    try {
      const seen = (state: CsrState) => tell(state.kind);
      const deps = { api: api(asking.current), clock, random, log, seen };
      return await waitForCertificate(deps, ref, controller.signal);
    } finally {
      controller.abort(cancelledError('The wait for the certificate is over'));
      await outgrown;
    }
  }
}

/** One that is over on arrival would be asked for again and again. */
function checkAnswer(certificate: string, { keyPem: key, ref }: PendingRequest, nowMs: number): void {
  const from = `the certificate signing request ${ref.name}`;
  const { leaf } = readKeyPair({ certificate, key, from });
  if (!isExpired(leaf, nowMs)) return;
  throw new KubelingError(
    'CERTIFICATE_NOT_ISSUED',
    `Cannot use the certificate of ${from} as it expired ${apiTime(leaf.notAfterMs)} and it is ${apiTime(nowMs)} here: check the clocks of this node and of the control plane`,
  );
}
