import type { CriClient, Image, PodSandboxConfig } from '../../cri/index.ts';
import {
  type Clock,
  cancelledError,
  describeError,
  isKind,
  KubelingError,
  LinkedController,
  LruMap,
  Semaphore,
  SingleFlight,
} from '../../lib/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';
import type { PullCredential } from './credentials/keyring.ts';
import { repositoryOf } from './image-name.ts';
import { type DownloadProgress, type ImageDownload, IngestWatcher } from './ingest-watcher.ts';

export interface PullLimits {
  /** How many pulls run at once; undefined for any number. */
  readonly maxParallel: number | undefined;
  /** How many pulls may begin in a second on average; 0 for any number. */
  readonly qps: number;
  readonly burst: number;
}

export interface PullRequest {
  readonly image: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly sandboxConfig: MessageInit<PodSandboxConfig> | undefined;
  /** Tried in this order; none for an anonymous pull. */
  readonly credentials: readonly PullCredential[];
  /** Whether the image was looked for right before, and not found. */
  readonly presence: 'absent' | 'unknown';
}

export interface PulledImage {
  readonly imageRef: string;
  /** As the runtime has it now; undefined when it would not say. */
  readonly image: Image | undefined;
  /** Without the wait for its turn. */
  readonly ms: number;
  /** With which of the credentials, by index; undefined when it needed none. */
  readonly used: number | undefined;
}

/** How far a pull is: waiting for its turn, or under way. */
export type PullStatus =
  | { readonly kind: 'queued'; readonly place: number; readonly length: number }
  | {
      readonly kind: 'pulling';
      /** Undefined while nothing is known of it. */
      readonly arrival: DownloadProgress | undefined;
      /** How many pulls run at the moment. */
      readonly running: number;
    };

export interface PullDeps {
  readonly cri: Pick<CriClient, 'pullImage' | 'imageStatus' | 'containerdIngests' | 'containerdContentOf'>;
  readonly clock: Clock;
  readonly limits: PullLimits;
}

/** One pull that runs. */
interface RunningPull {
  readonly image: string;
  readonly download: ImageDownload;
  /** Whether the image may have come by another pull, with other credentials. */
  company: 'alone' | 'others';
  /** Which of the credentials is being tried. */
  credentialIndex: number | undefined;
}

/** What came of waiting for one. */
type Outcome =
  | { readonly kind: 'answered'; readonly imageRef: string }
  /** The image is there, though the runtime has not said so. */
  | { readonly kind: 'appeared'; readonly imageRef: string }
  /** The image is there, perhaps from before, and nothing seems to be done about it. */
  | { readonly kind: 'silent' };

/** How often a long pull is checked for having done its work without saying so. */
const checkMs = 60_000;
/** A pull without any sign of life for so long is asked for anew, the next time twice as late. */
const firstStallMs = 120_000;
const rememberedImages = 1_000;

/** Brings images from registries: each once however many pods want it, and not too many at a time. */
export class ImagePulls {
  readonly #deps: PullDeps;
  readonly #flights = new SingleFlight<string, PulledImage>();
  readonly #running = new Map<string, RunningPull>();
  /** Images that pulls have brought. */
  readonly #pulledImages = new LruMap<string, true>({ capacity: rememberedImages });
  readonly #slots: Semaphore;
  readonly #rate: PullRate;
  readonly #ingests: IngestWatcher;

  constructor(deps: PullDeps) {
    this.#deps = deps;
    this.#slots = new Semaphore(deps.limits.maxParallel ?? Number.POSITIVE_INFINITY);
    this.#rate = new PullRate(deps.limits, deps.clock);
    this.#ingests = new IngestWatcher(deps);
  }

  /** Pulls under way or waiting for their turn. */
  get size(): number {
    return this.#flights.size;
  }

  /** Rejects as the runtime refused, or with the signal's reason; the pull is dropped when nobody waits for it. */
  pull(request: PullRequest, signal: AbortSignal): Promise<PulledImage> {
    const key = pullKey(request);
    return this.#flights.run(key, (inner) => this.#pullWithSlot(key, request, inner), signal);
  }

  /** How far a pull is that somebody waits for. */
  status(request: PullRequest): PullStatus {
    const key = pullKey(request);
    const place = this.#slots.positionOf(key);
    if (place !== undefined) return { kind: 'queued', place, length: this.#slots.waiting };
    const arrival = this.#running.get(key)?.download.progress;
    return { kind: 'pulling', arrival, running: this.#running.size };
  }

  async #pullWithSlot(key: string, request: PullRequest, signal: AbortSignal): Promise<PulledImage> {
    using _slot = await this.#slots.acquire(key, signal);
    // Only what really begins counts: waiting for a turn is no load for a registry.
    if (!this.#rate.take()) throw new KubelingError('IMAGE_PULL_RATE', 'pull QPS exceeded');
    using download = this.#ingests.watch(repositoryOf(request.image));
    const pull = this.#begin(request.image, download);
    this.#running.set(key, pull);
    try {
      const startMs = this.#deps.clock.monotonicMs();
      const imageRef = await this.#pullUntilThere(request, pull, signal);
      const ms = this.#deps.clock.monotonicMs() - startMs;
      this.#pulledImages.set(request.image, true);
      return { imageRef, image: await this.#inspect(request, signal), ms, used: pull.credentialIndex };
    } finally {
      this.#running.delete(key);
    }
  }

  #begin(image: string, download: ImageDownload): RunningPull {
    const others = [...this.#running.values()].filter((other) => other.image === image);
    for (const other of others) other.company = 'others';
    const company = others.length > 0 || this.#pulledImages.has(image) ? 'others' : 'alone';
    return { image, download, company, credentialIndex: undefined };
  }

  /**
   * A pull has no deadline, as nobody can tell how long one may take; so an answer that is lost must not be waited for.
   * An image that somebody else may have brought proves nothing about these credentials: it is pulled once more.
   */
  async #pullUntilThere(request: PullRequest, pull: RunningPull, signal: AbortSignal): Promise<string> {
    for (let patienceMs = firstStallMs; ; patienceMs *= 2) {
      const outcome = await this.#pullOrAppear(request, pull, patienceMs, signal);
      if (outcome.kind === 'answered') return outcome.imageRef;
      if (outcome.kind === 'appeared' && pull.company === 'alone') return outcome.imageRef;
    }
  }

  async #pullOrAppear(
    request: PullRequest,
    pull: RunningPull,
    patienceMs: number,
    signal: AbortSignal,
  ): Promise<Outcome> {
    using controller = new LinkedController(signal);
    const answered = this.#pullWithAny(request, pull, controller.signal);
    const seen = this.#waitForImage(request, pull, patienceMs, controller.signal);
    try {
      return await Promise.race([answered, seen]);
    } finally {
      controller.abort(cancelledError('The pull is over'));
      await Promise.allSettled([answered, seen]);
    }
  }

  /**
   * Settles with the image's id once one that was not there is. Of one that may have been there before nobody can tell
   * whether it has come: that settles when the pull has shown no sign of life for long enough.
   */
  async #waitForImage(
    request: PullRequest,
    pull: RunningPull,
    patienceMs: number,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const startMs = this.#deps.clock.monotonicMs();
    let before = request.presence;
    for (;;) {
      await this.#deps.clock.sleep(checkMs, signal);
      const found = await this.#imageStatus(request, signal).catch(() => 'not-said' as const);
      signal.throwIfAborted();
      if (found === undefined) before = 'absent';
      else if (found === 'not-said') continue;
      else if (before === 'absent') return { kind: 'appeared', imageRef: found.id };
      else if (this.#idleMs(pull, startMs) >= patienceMs) return { kind: 'silent' };
    }
  }

  #idleMs({ download }: RunningPull, startMs: number): number {
    const { progress } = download;
    if (progress?.state === 'arriving') return 0;
    return this.#deps.clock.monotonicMs() - Math.max(startMs, progress?.changedMs ?? startMs);
  }

  async #pullWithAny(request: PullRequest, pull: RunningPull, signal: AbortSignal): Promise<Outcome> {
    const { image, annotations, sandboxConfig, credentials } = request;
    const failures: unknown[] = [];
    const tries = credentials.length === 0 ? [undefined] : credentials;
    for (const [index, credential] of tries.entries()) {
      pull.credentialIndex = credential === undefined ? undefined : index;
      try {
        const { imageRef } = await this.#deps.cri.pullImage(
          { image: { image, annotations }, auth: credential?.auth, sandboxConfig },
          signal,
        );
        return { kind: 'answered', imageRef };
      } catch (error) {
        if (signal.aborted || isKind(error, 'Cancelled')) throw error;
        failures.push(error);
      }
    }
    throw failures.length === 1 ? failures[0] : severalFailures(failures);
  }

  /** Its size and user are wanted at once; not to know them is no reason to fail. */
  async #inspect(request: PullRequest, signal: AbortSignal): Promise<Image | undefined> {
    try {
      return await this.#imageStatus(request, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      return undefined;
    }
  }

  async #imageStatus({ image, annotations }: PullRequest, signal: AbortSignal): Promise<Image | undefined> {
    return (await this.#deps.cri.imageStatus({ image: { image, annotations } }, signal)).image;
  }
}

/** Who has other credentials may be refused where somebody else is not. */
function pullKey({ image, credentials }: PullRequest): string {
  return JSON.stringify([image, credentials.map(({ hash }) => hash)]);
}

function severalFailures(failures: readonly unknown[]): KubelingError {
  const texts = [...new Set(failures.map(describeError))];
  return new KubelingError('CRI_FAILED', texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`, {
    cause: failures[0],
  });
}

export interface RateLimits {
  /** 0 for any number. */
  readonly qps: number;
  readonly burst: number;
}

/** A bucket that fills with `qps` a second up to `burst`. */
export class PullRate {
  readonly #limits: RateLimits;
  readonly #clock: Clock;
  #tokens: number;
  #lastMs: number;

  constructor(limits: RateLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
    this.#tokens = limits.burst;
    this.#lastMs = clock.monotonicMs();
  }

  take(): boolean {
    const { qps, burst } = this.#limits;
    if (qps <= 0) return true;
    const nowMs = this.#clock.monotonicMs();
    this.#tokens = Math.min(burst, this.#tokens + ((nowMs - this.#lastMs) / 1_000) * qps);
    this.#lastMs = nowMs;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}
