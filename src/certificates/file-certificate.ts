import {
  apiTime,
  type Clock,
  describeError,
  HintLatch,
  KubelingError,
  type Logger,
  TypedEvents,
} from '../lib/index.ts';
import { isExpired, type KeyPair } from '../protocols/x509/index.ts';
import type { CertificateFiles } from './files.ts';
import { type PairFiles, PairReader } from './files.ts';
import { noObserver, type RotationObserver } from './metrics.ts';
import type { ServedCertificate } from './serving-certificate.ts';

export interface FileCertificateDeps {
  readonly files: CertificateFiles;
  readonly clock: Clock;
  readonly log: Logger;
  readonly observer?: RotationObserver | undefined;
  readonly at: PairFiles;
  /**
   * Renews the files before each read; returns the delay until the next call. Undefined for files
   * that another program renews.
   */
  readonly upkeep?: (() => Promise<number>) | undefined;
}

const roundMs = 60_000;
/**
 * Reads changed files after this delay, because certificate and key are written one after the
 * other.
 */
const debounceMs = 500;

/**
 * A certificate in files that another program may replace at any time. While the files are invalid,
 * the last valid pair stays in use.
 */
export class FileCertificate implements ServedCertificate {
  readonly #deps: FileCertificateDeps;
  readonly #reader: PairReader;
  readonly #hint: HintLatch;
  readonly #events: TypedEvents<{ rotated: KeyPair }>;
  #held: KeyPair;
  #broken: string | undefined;
  #nextRoundMs: number;

  private constructor(deps: FileCertificateDeps, first: InitialState) {
    this.#deps = deps;
    this.#reader = first.reader;
    this.#held = first.held;
    this.#nextRoundMs = first.nextRoundMs;
    this.#hint = new HintLatch(deps.clock);
    this.#events = new TypedEvents((error) => deps.log.error('Certificate rotation listener failed', error));
  }

  /** Opens the certificate files. Throws if they contain no usable pair. */
  static async open(deps: FileCertificateDeps): Promise<FileCertificate> {
    const nextRoundMs = (await deps.upkeep?.()) ?? roundMs;
    const reader = new PairReader(deps.files, deps.at);
    const certificate = new FileCertificate(deps, { reader, held: await mustLoad(reader), nextRoundMs });
    const problem = certificate.problem();
    if (problem !== undefined) deps.log.warn(`Serving certificate has a problem: ${problem}`);
    return certificate;
  }

  /**
   * Returns the certificate, even if it is expired: clients that do not verify it are still served,
   * and other clients report the reason.
   */
  current(): KeyPair {
    return this.#held;
  }

  held(): KeyPair {
    return this.#held;
  }

  onRotated(listener: (pair: KeyPair) => void): Disposable {
    return this.#events.on('rotated', listener);
  }

  refresh(): void {
    this.#hint.raise();
  }

  problem(): string | undefined {
    const isOver = isExpired(this.#held.leaf, this.#deps.clock.now());
    return isOver || this.#broken !== undefined ? this.describe() : undefined;
  }

  describe(): string {
    const { leaf, from } = this.#held;
    const isOver = isExpired(leaf, this.#deps.clock.now());
    const state = isOver
      ? `the serving certificate in ${from} expired ${apiTime(leaf.notAfterMs)}: replace it`
      : `the serving certificate in ${from} expires ${apiTime(leaf.notAfterMs)}`;
    return this.#broken === undefined ? state : `${state}; the last valid one is used: ${this.#broken}`;
  }

  async run(signal: AbortSignal): Promise<never> {
    const { files, at, clock } = this.#deps;
    using _watch = files.watch([at.certificateFile, at.keyFile], () => this.#hint.raise());
    for (;;) {
      const reason = await this.#hint.wait(Math.min(this.#nextRoundMs, roundMs), signal);
      if (reason === 'hint') await clock.sleep(debounceMs, signal);
      this.#hint.clear();
      await this.#round();
    }
  }

  async #round(): Promise<void> {
    const { log, observer = noObserver, upkeep } = this.#deps;
    try {
      this.#nextRoundMs = (await upkeep?.()) ?? roundMs;
      const pair = await mustLoad(this.#reader);
      this.#broken = undefined;
      this.#use(pair);
    } catch (error) {
      const why = describeError(error);
      if (this.#broken !== why) log.error('Failed to read serving certificate again', error);
      if (this.#broken === undefined) observer.renewFailed();
      this.#broken = why;
      this.#nextRoundMs = roundMs;
    }
  }

  #use(pair: KeyPair): void {
    const { clock, log, observer = noObserver } = this.#deps;
    const before = this.#held;
    if (pair.certificatePem === before.certificatePem && pair.keyPem === before.keyPem) return;
    this.#held = pair;
    observer.rotated(clock.now() - before.leaf.notBeforeMs);
    log.info('Loaded serving certificate', {
      file: pair.from,
      expires: apiTime(pair.leaf.notAfterMs),
    });
    this.#events.emit('rotated', pair);
  }
}

interface InitialState {
  readonly reader: PairReader;
  readonly held: KeyPair;
  readonly nextRoundMs: number;
}

async function mustLoad(reader: PairReader): Promise<KeyPair> {
  const pair = await reader.load();
  const { at } = reader;
  if (pair !== undefined) return pair;
  throw new KubelingError(
    'CERTIFICATE_INVALID',
    `Cannot serve as ${at.certificateFile} and ${at.keyFile} must both exist: put the certificate and its key there, or remove tlsCertFile and tlsPrivateKeyFile`,
  );
}
