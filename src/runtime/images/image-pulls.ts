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
  /** The maximum number of parallel pulls; undefined for no limit. */
  readonly maxParallel: number | undefined;
  /** The average pulls per second; 0 for no limit. */
  readonly qps: number;
  readonly burst: number;
}

export interface PullRequest {
  readonly image: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly sandboxConfig: MessageInit<PodSandboxConfig> | undefined;
  /** The credentials to try, in this order; empty for an anonymous pull. */
  readonly credentials: readonly PullCredential[];
  /** Whether the image was inspected before the pull and found missing. */
  readonly presence: 'absent' | 'unknown';
}

export interface PulledImage {
  readonly imageRef: string;
  /** The image after the pull; undefined when its inspection failed. */
  readonly image: Image | undefined;
  /** The duration of the pull without the time in the queue. */
  readonly ms: number;
  /** The index of the accepted credential; undefined for an anonymous pull. */
  readonly used: number | undefined;
}

/** The state of a pull: queued or running. */
export type PullStatus =
  | { readonly kind: 'queued'; readonly place: number; readonly length: number }
  | {
      readonly kind: 'pulling';
      /** The progress of the download; undefined while it is unknown. */
      readonly arrival: DownloadProgress | undefined;
      /** The number of running pulls. */
      readonly running: number;
    };

export interface PullDeps {
  readonly cri: Pick<CriClient, 'pullImage' | 'imageStatus' | 'containerdIngests' | 'containerdContentOf'>;
  readonly clock: Clock;
  readonly limits: PullLimits;
}

/** A running pull of an image. */
interface RunningPull {
  readonly image: string;
  readonly download: ImageDownload;
  /**
   * `others` if a concurrent pull with other credentials may have provided the image; `alone`
   * otherwise.
   */
  company: 'alone' | 'others';
  /** The index of the credential being tried. */
  credentialIndex: number | undefined;
}

/** The result of one attempt to pull an image. */
type Outcome =
  | { readonly kind: 'answered'; readonly imageRef: string }
  /** The image is present although PullImage has not returned. */
  | { readonly kind: 'appeared'; readonly imageRef: string }
  /** The image is present, possibly since before the pull, and the pull makes no progress. */
  | { readonly kind: 'silent' };

/** The interval of checks whether the image is present while PullImage has not returned. */
const checkMs = 60_000;
/** A pull without progress for this time is restarted; the time doubles with each restart. */
const firstStallMs = 120_000;
const rememberedImages = 1_000;

/**
 * Pulls images from registries: concurrent requests with equal image and credentials share one
 * pull. Limits the number of parallel pulls and the pull rate.
 */
export class ImagePulls {
  readonly #deps: PullDeps;
  readonly #flights = new SingleFlight<string, PulledImage>();
  readonly #running = new Map<string, RunningPull>();
  /** The IDs of images that this process has pulled. */
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

  /** The number of running and queued pulls. */
  get size(): number {
    return this.#flights.size;
  }

  /**
   * Pulls an image. Rejects with the runtime's error or the signal's reason. A pull for several
   * callers is cancelled when all of them are.
   */
  pull(request: PullRequest, signal: AbortSignal): Promise<PulledImage> {
    const key = pullKey(request);
    return this.#flights.run(key, (inner) => this.#pullWithSlot(key, request, inner), signal);
  }

  /** Returns the state of a pull in flight. */
  status(request: PullRequest): PullStatus {
    const key = pullKey(request);
    const place = this.#slots.positionOf(key);
    if (place !== undefined) return { kind: 'queued', place, length: this.#slots.waiting };
    const arrival = this.#running.get(key)?.download.progress;
    return { kind: 'pulling', arrival, running: this.#running.size };
  }

  async #pullWithSlot(key: string, request: PullRequest, signal: AbortSignal): Promise<PulledImage> {
    using _slot = await this.#slots.acquire(key, signal);
    // Queued pulls do not count for the rate limit, because they put no load on the registry.
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
   * A pull has no deadline, because its duration is unknown; a lost PullImage response is detected
   * by the presence of the image. If another pull may have provided the image, its presence does
   * not prove that the registry accepts these credentials, so the image is pulled again.
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
      controller.abort(cancelledError('The pull has finished'));
      await Promise.allSettled([answered, seen]);
    }
  }

  /**
   * Resolves with the image ID when the image becomes present. If it may have been present before,
   * resolves when the pull made no progress for the stall time.
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
      const found = await this.#imageStatus(request, signal).catch(() => 'unknown' as const);
      signal.throwIfAborted();
      if (found === undefined) before = 'absent';
      else if (found === 'unknown') continue;
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

  /**
   * Inspects the pulled image for its size and user; a failed inspection does not fail the pull.
   */
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

/**
 * The key by which concurrent pulls are shared. Pulls with different credentials have different
 * keys, because the registry may reject some of the credentials.
 */
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
  /** The rate limit in pulls per second; 0 for no limit. */
  readonly qps: number;
  readonly burst: number;
}

/** A token bucket with `qps` tokens per second and a capacity of `burst`. */
class PullRate {
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
