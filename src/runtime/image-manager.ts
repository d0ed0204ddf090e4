import type { AuthConfig, CriClient, Image, PodSandboxConfig } from '../cri/index.ts';
import {
  type Clock,
  describeError,
  formatDurationMs,
  KeyedBackoff,
  LruMap,
  type Random,
} from '../lib/index.ts';
import type { MessageInit } from '../lib/protobuf/index.ts';
import type { Pod, PodEvent, PodJournal, PodUid } from '../pods/index.ts';
import { pullPolicyOf, readImageName } from './image-name.ts';
import {
  ImagePulls,
  type PulledImage,
  type PullLimits,
  type PullRequest,
  type PullStanding,
} from './image-pulls.ts';
import type { StartObserver } from './metrics.ts';

/** The waiting reasons of a container whose image is not to be had; part of the API. */
export type ImageFailureReason =
  | 'ErrImagePull'
  | 'ImagePullBackOff'
  | 'ErrImageNeverPull'
  | 'InvalidImageName'
  | 'ImageInspectError'
  | 'RegistryUnavailable'
  | 'SignatureValidationFailed';

/** An image as containers are made from it. */
export interface ImageFacts {
  /** What the runtime calls it, whatever its tags come to mean later. */
  readonly ref: string;
  /** Of its default user; undefined when it names one or none. */
  readonly uid: bigint | undefined;
  /** Empty for none. */
  readonly username: string;
}

export type EnsuredImage =
  | { readonly ok: true; readonly image: ImageFacts }
  | {
      readonly ok: false;
      readonly reason: ImageFailureReason;
      readonly message: string;
      /** How long until the next try may be made, when that is what it waits for. */
      readonly waitMs?: number;
    };

export interface ImageRequest {
  readonly pod: Pod;
  readonly container: {
    readonly name: string;
    readonly image: string;
    readonly pullPolicy: string | undefined;
  };
  /** Such as spec.containers{web}: what events are about. */
  readonly fieldPath: string | undefined;
  readonly sandboxConfig: MessageInit<PodSandboxConfig> | undefined;
  /** What this sync has seen of images already, by name; filled by the call. */
  readonly seen: Map<string, Image>;
}

/** Who may pull what; asked only when there is something to pull. */
export interface CredentialProvider {
  credentialsFor(pod: Pod, image: string, signal: AbortSignal): Promise<readonly MessageInit<AuthConfig>[]>;
}

export const noCredentials: CredentialProvider = { credentialsFor: async () => [] };

export interface ImageManagerDeps {
  readonly cri: Pick<CriClient, 'imageStatus' | 'pullImage'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly journal: PodJournal;
  readonly credentials: CredentialProvider;
  readonly limits: PullLimits;
  readonly startObserver?: Pick<StartObserver, 'imagePulled'> | undefined;
}

const backoffPolicy = { baseMs: 10_000, maxMs: 300_000, resetAfterMs: 600_000 };
const rememberedErrors = 1_000;
/** A pull is silent for so long, then tells how it is doing again and again. */
const firstNewsMs = 10_000;
const newsMs = 30_000;
const namedFailures = [
  ['RegistryUnavailable', 'the registry is unavailable'],
  ['SignatureValidationFailed', 'the signature validation failed'],
] as const;

/** Sees to it that the image of a container is on the machine, as its pull policy wants it. */
export class ImageManager {
  readonly #deps: ImageManagerDeps;
  readonly #pulls: ImagePulls;
  /** By pod and image; on the monotonic clock. */
  readonly #backoff: KeyedBackoff;
  readonly #lastErrors = new LruMap<string, string>({ capacity: rememberedErrors });

  constructor(deps: ImageManagerDeps) {
    this.#deps = deps;
    this.#pulls = new ImagePulls(deps);
    this.#backoff = new KeyedBackoff({ policy: backoffPolicy, random: deps.random });
  }

  /** What is remembered of pulls: under way, and failed ones that wait. */
  held(): Readonly<Record<'pulls' | 'pullBackoffs', number>> {
    return { pulls: this.#pulls.size, pullBackoffs: this.#backoff.size };
  }

  /** A pod that comes back under the same uid is another one: it does not wait for what its forerunner did. */
  forgetPod(uid: PodUid): void {
    const prefix = backoffKey(uid, '');
    for (const [key] of this.#backoff.entries()) if (key.startsWith(prefix)) this.#backoff.forget(key);
    for (const [key] of [...this.#lastErrors]) if (key.startsWith(prefix)) this.#lastErrors.delete(key);
  }

  /** Rejects only when the signal is aborted; all else is an answer. */
  async ensureImageExists(request: ImageRequest, signal: AbortSignal): Promise<EnsuredImage> {
    const { image } = request.container;
    const name = readImageName(image);
    if (!name.ok) {
      const message = `Failed to apply default image tag "${image}": ${name.why}`;
      this.#event(request, 'Warning', 'InspectFailed', message);
      return { ok: false, reason: 'InvalidImageName', message };
    }
    const policy = pullPolicyOf(request.container.pullPolicy, image);
    if (policy !== 'Always') {
      const found = await this.#findPresent(request, name.reference, signal);
      if (found !== undefined) return found;
      if (policy === 'Never') return this.#neverPulled(request);
    }
    return await this.#pullUnlessBackingOff(request, name.reference, signal);
  }

  /** The answer for an image that is here or cannot be looked up; undefined for one that is not here. */
  async #findPresent(
    request: ImageRequest,
    reference: string,
    signal: AbortSignal,
  ): Promise<EnsuredImage | undefined> {
    const { pod, container, seen } = request;
    try {
      const image = seen.get(reference) ?? (await this.#look(pod, reference, signal));
      if (image === undefined) return undefined;
      seen.set(reference, image);
      const text = `Container image "${container.image}" already present on machine and can be accessed by the pod`;
      this.#event(request, 'Normal', 'Pulled', text);
      return { ok: true, image: factsOf(image.id, image) };
    } catch (error) {
      signal.throwIfAborted();
      const message = `Failed to inspect image "${container.image}": ${describeError(error)}`;
      this.#event(request, 'Warning', 'InspectFailed', message);
      return { ok: false, reason: 'ImageInspectError', message };
    }
  }

  async #look(pod: Pod, image: string, signal: AbortSignal): Promise<Image | undefined> {
    const annotations = pod.metadata.annotations ?? {};
    return (await this.#deps.cri.imageStatus({ image: { image, annotations } }, signal)).image;
  }

  #neverPulled(request: ImageRequest): EnsuredImage {
    const message = `Container image "${request.container.image}" is not present with pull policy of Never`;
    this.#event(request, 'Warning', 'ErrImageNeverPull', message);
    return { ok: false, reason: 'ErrImageNeverPull', message };
  }

  async #pullUnlessBackingOff(
    request: ImageRequest,
    reference: string,
    signal: AbortSignal,
  ): Promise<EnsuredImage> {
    const { image } = request.container;
    const key = backoffKey(request.pod.metadata.uid, image);
    const waitMs = this.#backoff.waitMs(key, { nowMs: this.#deps.clock.monotonicMs() });
    if (waitMs > 0) return this.#backingOff(request, key, waitMs);
    this.#lastErrors.delete(key);
    this.#event(request, 'Normal', 'Pulling', `Pulling image "${image}"`);
    const startMs = this.#deps.clock.monotonicMs();
    try {
      const pulled = await this.#pull(request, reference, signal);
      this.#notePulled(request, pulled, this.#deps.clock.monotonicMs() - startMs);
      if (pulled.image !== undefined) request.seen.set(reference, pulled.image);
      return { ok: true, image: factsOf(pulled.imageRef, pulled.image) };
    } catch (error) {
      signal.throwIfAborted();
      return this.#pullFailed(request, key, error);
    }
  }

  async #pull(request: ImageRequest, image: string, signal: AbortSignal): Promise<PulledImage> {
    const { pod, sandboxConfig } = request;
    const credentials = await this.#deps.credentials.credentialsFor(pod, image, signal);
    const annotations = pod.metadata.annotations ?? {};
    const before = pullPolicyOf(request.container.pullPolicy, image) === 'Always' ? 'unknown' : 'absent';
    const pull = { image, annotations, sandboxConfig, credentials, before } as const;
    using _news = this.#tellNews(request, pull);
    return await this.#pulls.pull(pull, signal);
  }

  /** Tells the owner of the pod now and then what a slow pull is about, until disposed of. */
  #tellNews(request: ImageRequest, pull: PullRequest): Disposable {
    const { clock } = this.#deps;
    const { image } = request.container;
    const startMs = clock.monotonicMs();
    let timer = clock.timer(firstNewsMs, () => tell());
    const tell = () => {
      const elapsed = formatDurationMs(Math.round((clock.monotonicMs() - startMs) / 1_000) * 1_000);
      const news = describeStanding(this.#pulls.standing(pull), elapsed);
      this.#event(request, 'Normal', 'PullProgress', `Pulling image "${image}": ${news}`);
      timer = clock.timer(newsMs, () => tell());
    };
    return { [Symbol.dispose]: () => timer.cancel() };
  }

  #backingOff(request: ImageRequest, key: string, waitMs: number): EnsuredImage {
    const text = `Back-off pulling image "${request.container.image}"`;
    this.#event(request, 'Normal', 'BackOff', text);
    const last = this.#lastErrors.peek(key);
    const message = last === undefined ? text : `${text}: ${last}`;
    return { ok: false, reason: 'ImagePullBackOff', message, waitMs };
  }

  #notePulled(request: ImageRequest, pulled: PulledImage, allMs: number): void {
    const { clock, journal } = this.#deps;
    const { name, image } = request.container;
    const took = formatDurationMs(Math.trunc(pulled.ms));
    const whole = formatDurationMs(Math.trunc(allMs));
    const size = pulled.image?.size ?? 0n;
    const message = `Successfully pulled image "${image}" in ${took} (${whole} including waiting). Image size: ${size} bytes.`;
    this.#event(request, 'Normal', 'Pulled', message);
    this.#deps.startObserver?.imagePulled(allMs, pulled.image?.size);
    journal.step(request.pod.metadata.uid, {
      stage: 'image',
      outcome: 'done',
      message,
      container: name,
      ms: allMs,
    });
    this.#backoff.collect(clock.monotonicMs());
  }

  #pullFailed(request: ImageRequest, key: string, error: unknown): EnsuredImage {
    const { image, name } = request.container;
    const text = describeError(error);
    this.#event(request, 'Warning', 'Failed', `Failed to pull image "${image}": ${text}`);
    this.#backoff.fail(key, { nowMs: this.#deps.clock.monotonicMs() });
    const failure = pullFailure(image, text);
    this.#lastErrors.set(key, `${failure.reason}: ${failure.message}`);
    const message = `Failed to pull image "${image}": ${text}`;
    this.#deps.journal.step(request.pod.metadata.uid, {
      stage: 'image',
      outcome: 'failed',
      message,
      container: name,
    });
    return { ok: false, ...failure };
  }

  #event(request: ImageRequest, type: PodEvent['type'], reason: string, message: string): void {
    this.#deps.journal.event(request.pod, { type, reason, message, fieldPath: request.fieldPath });
  }
}

function backoffKey(uid: PodUid, image: string): string {
  return `${uid}_${image}`;
}

function describeStanding(standing: PullStanding, elapsed: string): string {
  if (standing.kind === 'pulling') return `under way after ${elapsed}`;
  const { place, length } = standing;
  return `waiting for its turn for ${elapsed}, place ${place} of ${length} in the queue`;
}

function factsOf(ref: string, image: Image | undefined): ImageFacts {
  return { ref, uid: image?.uid?.value, username: image?.username ?? '' };
}

/** Some runtimes say by the first word of the message what kind of failure it was. */
function pullFailure(
  image: string,
  text: string,
): { readonly reason: ImageFailureReason; readonly message: string } {
  for (const [reason, because] of namedFailures) {
    if (!text.startsWith(reason)) continue;
    return {
      reason,
      message: `image pull failed for ${image} because ${because}${text.slice(reason.length)}`,
    };
  }
  return { reason: 'ErrImagePull', message: text };
}
