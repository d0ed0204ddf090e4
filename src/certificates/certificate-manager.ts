import { isApiCode } from '../api/index.ts';
import {
  apiTime,
  backoffDelayMs,
  type Clock,
  describeError,
  HintLatch,
  isKind,
  jitter,
  KubelingError,
  type Logger,
  type Random,
  TypedEvents,
} from '../lib/index.ts';
import { type Identity, identityKey, isExpired, type KeyPair, missingFrom } from '../protocols/x509/index.ts';
import type { CertificateStore } from './certificate-store.ts';
import type { RotationObserver } from './metrics.ts';
import type { CertificateRequester } from './requester.ts';
import { planRotation, type RequiredIdentity, rotationDeadlineMs } from './rotation-plan.ts';
import type { ServedCertificate } from './serving-certificate.ts';
import type { CsrState } from './signing-request.ts';

export interface CertificateManagerDeps {
  /** The name used in log messages: "client" or "serving". */
  readonly name: string;
  readonly store: CertificateStore;
  readonly requester: CertificateRequester;
  readonly required: () => RequiredIdentity;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly observer: RotationObserver;
  /**
   * How long the node must have required a new identity before a certificate without that identity
   * is replaced; 0 for an identity that never changes.
   */
  readonly debounceMs: number;
  /** The interval at which `required` is called to detect a changed identity. */
  readonly pollMs: number;
  /** The certificate at start, and whether it must be replaced as soon as possible. */
  readonly first: { readonly pair: KeyPair | undefined; readonly action: 'keep' | 'replace' };
}

/** The back-off of failed requests: 2, 4, 8 and 16 seconds, then always 32. */
const retryPolicy = { baseMs: 2_000, factor: 2, maxMs: 32_000 };
const retryJitter = 0.1;
/** The minimum interval between requests, which also applies when clocks or signers are faulty. */
const minRequestIntervalMs = 10_000;

/**
 * Renews one certificate in time by signing requests to the cluster. At most one request is
 * pending.
 *
 *     wait until due ─> wait until the identity is stable ─> request ─> wait for the signer
 *       ─> store, notify listeners ─> wait until due
 *     any failure ─> back off ─> wait until due
 */
export class CertificateManager implements ServedCertificate {
  readonly #deps: CertificateManagerDeps;
  readonly #hint: HintLatch;
  readonly #events: TypedEvents<{ rotated: KeyPair }>;
  #held: KeyPair | undefined;
  #deadlineMs: number | undefined;
  #receivedMs: number | undefined;
  #required: { readonly key: string; readonly sinceMs: number } | undefined;
  #incompleteFor: string | undefined;
  #failures = 0;
  #retryAtMs = 0;
  #progress: RotationProgress = { kind: 'idle' };
  #serverResponds = false;

  constructor(deps: CertificateManagerDeps) {
    this.#deps = deps;
    this.#hint = new HintLatch(deps.clock);
    this.#events = new TypedEvents((error) => deps.log.error('Certificate rotation listener failed', error));
    this.#hold(deps.first.pair);
    if (deps.first.action === 'replace') this.#deadlineMs = undefined;
  }

  current(): KeyPair | undefined {
    const held = this.#held;
    return held === undefined || isExpired(held.leaf, this.#deps.clock.now()) ? undefined : held;
  }

  held(): KeyPair | undefined {
    return this.#held;
  }

  /**
   * Whether the API server is known to process requests, because it issued a certificate or
   * rejected a request. A missing certificate is then not due to an unreachable server.
   */
  get serverResponds(): boolean {
    return this.#serverResponds;
  }

  onRotated(listener: (pair: KeyPair) => void): Disposable {
    return this.#events.on('rotated', listener);
  }

  /**
   * Checks immediately whether the required identity has changed, for example because the node's
   * addresses changed.
   */
  refresh(): void {
    this.#hint.raise();
  }

  problem(): string | undefined {
    const isFailing = this.#progress.kind === 'failed' && this.#isNearEnd();
    return this.current() === undefined || isFailing ? this.describe() : undefined;
  }

  describe(): string {
    const { clock, name, store } = this.#deps;
    const held = this.#held;
    const state =
      held === undefined
        ? `there is no ${name} certificate`
        : `the ${name} certificate in ${held.from} ${isExpired(held.leaf, clock.now()) ? 'expired' : 'expires'} ${apiTime(held.leaf.notAfterMs)}`;
    return [state, describeProgress(this.#progress), ...store.problems]
      .filter((part) => part !== '')
      .join('; ');
  }

  /**
   * Runs until the signal aborts, and rejects with its reason. Must not be called again while it
   * runs.
   */
  async run(signal: AbortSignal): Promise<never> {
    for (;;) {
      const identity = await this.#untilDue(signal);
      await this.#rotate(identity, signal);
    }
  }

  /** Waits until a certificate is due and returns the identity to request. */
  async #untilDue(signal: AbortSignal): Promise<Identity> {
    const { clock, required: readRequired, debounceMs, log, name } = this.#deps;
    for (;;) {
      this.#hint.clear();
      const target = this.#recordRequired(readRequired());
      if (target.kind === 'unknown') {
        this.#progress = { kind: 'unknown', why: target.why };
        await this.#pause(Number.POSITIVE_INFINITY, signal);
        continue;
      }
      const plan = planRotation({
        held: this.#held,
        required: target.identity,
        nowMs: clock.now(),
        receivedMs: this.#receivedMs,
        deadlineMs: this.#deadlineMs,
        stableMs: clock.monotonicMs() - (this.#required?.sinceMs ?? 0),
        debounceMs,
        incompleteFor: this.#incompleteFor,
      });
      const backoffMs = this.#retryAtMs - clock.monotonicMs();
      if (plan.do === 'request' && backoffMs <= 0) {
        log.info('Requesting new certificate', { certificate: name, why: plan.why });
        return target.identity;
      }
      if (plan.do === 'settle') this.#progress = { kind: 'settling', why: plan.why };
      else if (plan.do === 'wait') this.#progress = { kind: 'idle' };
      await this.#pause(plan.do === 'request' ? backoffMs : plan.ms, signal);
    }
  }

  /** Records since when the current identity is required. */
  #recordRequired(required: RequiredIdentity): RequiredIdentity {
    const key = required.kind === 'ready' ? identityKey(required.identity) : '';
    if (this.#required?.key !== key) this.#required = { key, sinceMs: this.#deps.clock.monotonicMs() };
    return required;
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    await this.#hint.wait(Math.min(ms, this.#deps.pollMs), signal);
  }

  async #rotate(identity: Identity, signal: AbortSignal): Promise<void> {
    try {
      const before = this.#held;
      const pair = await this.#request(identity, signal);
      this.#serverResponds = true;
      this.#failures = 0;
      this.#retryAtMs = this.#deps.clock.monotonicMs() + minRequestIntervalMs;
      this.#accept(pair, before, identity);
    } catch (error) {
      signal.throwIfAborted();
      // The request was cancelled because a different identity is required now.
      if (isKind(error, 'Cancelled')) return;
      this.#recordFailure(error);
    }
  }

  async #request(identity: Identity, signal: AbortSignal): Promise<KeyPair> {
    this.#progress = { kind: 'requesting' };
    return await this.#deps.requester.request(
      {
        identity,
        current: this.current(),
        onStatus: (status) => {
          this.#progress = { kind: 'requested', ...status };
        },
        outdated: (waitSignal) => this.#untilOutdated(identity, waitSignal),
      },
      signal,
    );
  }

  /** Resolves when a different identity than the requested one has been required for some time. */
  async #untilOutdated(requested: Identity, signal: AbortSignal): Promise<void> {
    const { clock, debounceMs, required: readRequired } = this.#deps;
    for (;;) {
      this.#hint.clear();
      const target = this.#recordRequired(readRequired());
      const stableMs = clock.monotonicMs() - (this.#required?.sinceMs ?? 0);
      const isOutdated = target.kind === 'ready' && missingFrom(requested, target.identity).length > 0;
      if (isOutdated && stableMs >= debounceMs) return;
      await this.#pause(isOutdated ? debounceMs - stableMs : Number.POSITIVE_INFINITY, signal);
    }
  }

  #accept(pair: KeyPair, before: KeyPair | undefined, identity: Identity): void {
    const { clock, log, name, observer } = this.#deps;
    const missing = missingFrom(pair.leaf, identity);
    this.#incompleteFor = missing.length > 0 ? identityKey(identity) : undefined;
    if (missing.length > 0)
      log.warn('Issued certificate does not match request', { certificate: name, lacking: missing });
    this.#hold(pair);
    this.#receivedMs = clock.now();
    this.#progress = { kind: 'idle' };
    observer.rotated(before === undefined ? undefined : clock.now() - before.leaf.notBeforeMs);
    log.info('Stored new certificate', {
      certificate: name,
      file: pair.from,
      expires: apiTime(pair.leaf.notAfterMs),
    });
    this.#events.emit('rotated', pair);
  }

  #hold(pair: KeyPair | undefined): void {
    this.#held = pair;
    this.#deadlineMs = pair && rotationDeadlineMs(pair.leaf, this.#deps.random);
  }

  #recordFailure(error: unknown): void {
    const { clock, random, log, name, observer } = this.#deps;
    this.#failures++;
    const delayMs = jitter(
      random,
      backoffDelayMs(retryPolicy, this.#failures),
      this.#failures < 5 ? retryJitter : 0,
    );
    this.#retryAtMs = clock.monotonicMs() + delayMs;
    this.#progress = { kind: 'failed', error, failures: this.#failures };
    // Of the failures, only an API error changes whether the server is known to respond; others,
    // such as the denial of a signing request, do not.
    if (error instanceof KubelingError && error.code.startsWith('API_')) {
      this.#serverResponds = isApiCode(error, 'API_UNAUTHORIZED', 'API_FORBIDDEN', 'API_NOT_FOUND');
    }
    observer.renewFailed();
    log.error('Failed to get certificate', error, { certificate: name, retryInMs: Math.round(delayMs) });
  }

  /**
   * Whether 90 % of the lifetime of the certificate is over; a failed renewal is then reported as a
   * problem.
   */
  #isNearEnd(): boolean {
    const held = this.#held;
    if (held === undefined) return true;
    const { notBeforeMs, notAfterMs } = held.leaf;
    return this.#deps.clock.now() > notBeforeMs + 0.9 * (notAfterMs - notBeforeMs);
  }
}

/**
 * The progress towards the next certificate, from waiting until it is due to waiting for the
 * signer.
 */
export type RotationProgress =
  | { readonly kind: 'idle' }
  /** Waiting, because the identity to request is not known yet. */
  | { readonly kind: 'unknown'; readonly why: string }
  | { readonly kind: 'settling'; readonly why: string }
  | { readonly kind: 'requesting' }
  | {
      readonly kind: 'requested';
      readonly csr: string;
      readonly sinceMs: number;
      readonly state: CsrState['kind'];
    }
  | { readonly kind: 'failed'; readonly error: unknown; readonly failures: number };

/** Describes the progress for users; empty when no certificate is being requested. */
function describeProgress(progress: RotationProgress): string {
  switch (progress.kind) {
    case 'idle':
      return '';
    case 'unknown':
      return `none can be requested yet: ${progress.why}`;
    case 'settling':
      return `a new one is requested soon, as ${progress.why}`;
    case 'requesting':
      return 'a new one is being requested';
    case 'requested':
      return describeRequest(progress);
    case 'failed':
      return `the request failed ${progress.failures} times: ${describeError(progress.error)}`;
  }
}

function describeRequest({ csr, sinceMs, state }: Extract<RotationProgress, { kind: 'requested' }>): string {
  const since = apiTime(sinceMs);
  return state === 'pending'
    ? `the certificate signing request ${csr} has been pending since ${since}: approve it with "kubectl certificate approve ${csr}"`
    : `the certificate signing request ${csr} of ${since} is approved and waits for its signer`;
}
