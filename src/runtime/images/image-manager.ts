import type { CriClient, Image, PodSandboxConfig } from '../../cri/index.ts';
import {
  type Clock,
  describeError,
  formatDurationMs,
  isKind,
  KeyedBackoff,
  LruMap,
  type Random,
} from '../../lib/index.ts';
import {
  type Pod,
  type PodEvent,
  type PodJournal,
  type PodUid,
  pullPolicyOf,
  readImageName,
} from '../../pods/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';
import type { StartObserver } from '../metrics.ts';
import type { CredentialProvider, PullCredential } from './credentials/keyring.ts';
import type { ImageLeases } from './gc/image-leases.ts';
import { ImagePulls, type PulledImage, type PullLimits } from './image-pulls.ts';
import { reportPull } from './pull-progress.ts';
import type { PullEnd, PullRecords } from './pull-records/pull-records.ts';

/** Waiting reasons of containers whose image is not available; part of the API. */
export type ImageFailureReason =
  | 'ErrImagePull'
  | 'ImagePullBackOff'
  | 'ErrImageNeverPull'
  | 'InvalidImageName'
  | 'ImageInspectError'
  | 'RegistryUnavailable'
  | 'SignatureValidationFailed';

/** The image from which a container is created. */
export interface ImageFacts {
  /** The runtime's reference of the image, which stays the same when tags change. */
  readonly ref: string;
  /** The user ID of the image's default user; undefined for a named user or none. */
  readonly uid: bigint | undefined;
  /** The name of the image's default user; empty for none. */
  readonly username: string;
}

export type EnsuredImage =
  | { readonly ok: true; readonly image: ImageFacts }
  | {
      readonly ok: false;
      readonly reason: ImageFailureReason;
      readonly message: string;
      /** The time until the next pull is allowed, when the failure is a back-off. */
      readonly waitMs?: number;
    };

/** The result of ensuring that an image is present; a success includes the runtime's image ID. */
type Ensured =
  | Extract<EnsuredImage, { ok: false }>
  | (Extract<EnsuredImage, { ok: true }> & { readonly id: string });

export interface ImageRequest {
  readonly pod: Pod;
  readonly container: {
    readonly name: string;
    readonly image: string;
    readonly pullPolicy: string | undefined;
  };
  /** The field path for events, for example spec.containers{web}. */
  readonly fieldPath: string | undefined;
  readonly sandboxConfig: MessageInit<PodSandboxConfig> | undefined;
  /**
   * The images that were already inspected during this sync, by name; newly inspected images are
   * added to this map.
   */
  readonly inspected: Map<string, Image>;
  /** Receives a lease that protects the image from removal until the container is created. */
  readonly hold: (lease: Disposable) => void;
}

export interface ImageManagerDeps {
  readonly cri: Pick<CriClient, 'imageStatus' | 'pullImage' | 'containerdIngests' | 'containerdContentOf'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly journal: PodJournal;
  readonly credentials: CredentialProvider;
  /** Checks access to present images; if undefined, every pod may use every present image. */
  readonly pullRecords?: PullRecords | undefined;
  readonly limits: PullLimits;
  readonly leases: ImageLeases;
  readonly startObserver?: Pick<StartObserver, 'imagePulled'> | undefined;
}

const backoffPolicy = { baseMs: 10_000, maxMs: 300_000, resetAfterMs: 600_000 };
const rememberedErrors = 1_000;
const namedFailures = [
  ['RegistryUnavailable', 'the registry is unavailable'],
  ['SignatureValidationFailed', 'the signature validation failed'],
] as const;

interface LastFailure {
  readonly text: string;
  /**
   * The fingerprint of the pod's secrets when the pull failed. If the secrets have changed since
   * then, the back-off is skipped.
   */
  readonly fingerprint: string;
}

/** Loads the credentials on the first call and caches them for further calls. */
type GetCredentials = () => Promise<readonly PullCredential[]>;

interface PendingPull {
  /** The image name with its tag. */
  readonly reference: string;
  readonly credentials: GetCredentials;
  /** Whether the image was inspected and found missing. */
  readonly presence: 'absent' | 'unknown';
}

/** Ensures that a container's image is present, according to the pull policy of the container. */
export class ImageManager {
  readonly #deps: ImageManagerDeps;
  readonly #pulls: ImagePulls;
  /** The back-off of failed pulls by pod and image, on the monotonic clock. */
  readonly #backoff: KeyedBackoff;
  readonly #lastErrors = new LruMap<string, LastFailure>({ capacity: rememberedErrors });

  constructor(deps: ImageManagerDeps) {
    this.#deps = deps;
    this.#pulls = new ImagePulls(deps);
    this.#backoff = new KeyedBackoff({ policy: backoffPolicy, random: deps.random });
  }

  /** The number of pulls in flight and of failed pulls in back-off. */
  pending(): Readonly<Record<'pulls' | 'pullBackoffs', number>> {
    return { pulls: this.#pulls.size, pullBackoffs: this.#backoff.size };
  }

  /** Removes the back-off of the pod, so that a new pod with the same UID does not inherit it. */
  forgetPod(uid: PodUid): void {
    const prefix = backoffKey(uid, '');
    for (const [key] of this.#backoff.entries()) if (key.startsWith(prefix)) this.#backoff.delete(key);
    for (const [key] of [...this.#lastErrors]) if (key.startsWith(prefix)) this.#lastErrors.delete(key);
  }

  /**
   * Ensures that the image is present. Rejects only when the signal is aborted; failures are part
   * of the result.
   */
  async ensureImageExists(request: ImageRequest, signal: AbortSignal): Promise<EnsuredImage> {
    const { leases } = this.#deps;
    const name = readImageName(request.container.image);
    using _wanted = name.ok ? await leases.reserve(name.reference, signal) : undefined;
    for (;;) {
      const mark = leases.mark();
      const ensured = await this.#ensure(request, signal);
      if (!ensured.ok) return ensured;
      const lease =
        (await leases.hold(ensured.id, mark, signal)) ??
        (await this.#holdIfThere(request, ensured.id, signal));
      if (lease === undefined) continue;
      request.hold(lease);
      return { ok: true, image: ensured.image };
    }
  }

  /**
   * Protects the image from removal if it is still present after a removal was detected; undefined
   * when it was removed.
   */
  async #holdIfThere(
    { pod }: ImageRequest,
    id: string,
    signal: AbortSignal,
  ): Promise<Disposable | undefined> {
    const { leases } = this.#deps;
    const mark = leases.mark();
    const found = await this.#inspect(pod, id, signal).catch(() => undefined);
    signal.throwIfAborted();
    return found === undefined ? undefined : await leases.hold(id, mark, signal);
  }

  async #ensure(request: ImageRequest, signal: AbortSignal): Promise<Ensured> {
    const { image } = request.container;
    const name = readImageName(image);
    if (!name.ok) {
      const message = `Failed to apply default image tag "${image}": ${name.why}`;
      this.#event(request, 'Warning', 'InspectFailed', message);
      return { ok: false, reason: 'InvalidImageName', message };
    }
    const policy = pullPolicyOf(request.container.pullPolicy, image);
    const credentials = this.#credentialsOf(request, signal);
    const pull = { reference: name.reference, credentials, presence: 'unknown' } as const;
    if (policy === 'Always') return await this.#pullUnlessBackingOff(request, pull, signal);
    const found = await this.#findPresent(request, pull, signal);
    if (typeof found !== 'string') return found;
    if (policy === 'Never') return this.#neverPulled(request);
    const presence = found === 'absent' ? 'absent' : 'unknown';
    return await this.#pullUnlessBackingOff(request, { ...pull, presence }, signal);
  }

  /**
   * Inspects an image that will be needed soon and caches the result in `inspected`. A missing
   * image or an error is not cached. Never rejects.
   */
  async inspectAhead(
    { pod, container, inspected }: Pick<ImageRequest, 'pod' | 'container' | 'inspected'>,
    signal: AbortSignal,
  ): Promise<void> {
    const name = readImageName(container.image);
    if (!name.ok || inspected.has(name.reference)) return;
    if (pullPolicyOf(container.pullPolicy, container.image) === 'Always') return;
    const image = await this.#inspect(pod, name.reference, signal).catch(() => undefined);
    if (image !== undefined) inspected.set(name.reference, image);
  }

  #credentialsOf({ pod, container }: ImageRequest, signal: AbortSignal): GetCredentials {
    let found: Promise<readonly PullCredential[]> | undefined;
    return () => {
      found ??= this.#deps.credentials.credentialsFor(pod, container.image, signal);
      return found;
    };
  }

  /**
   * Returns the result for a present, accessible image or for a failed inspection; otherwise why a
   * pull is needed.
   */
  async #findPresent(
    request: ImageRequest,
    { reference, credentials }: PendingPull,
    signal: AbortSignal,
  ): Promise<Ensured | 'absent' | 'not-permitted'> {
    const { pod, container } = request;
    let image: Image | undefined;
    try {
      image = this.#inspectedImage(request, reference) ?? (await this.#inspect(pod, reference, signal));
    } catch (error) {
      signal.throwIfAborted();
      const message = `Failed to inspect image "${container.image}": ${describeError(error)}`;
      this.#event(request, 'Warning', 'InspectFailed', message);
      return { ok: false, reason: 'ImageInspectError', message };
    }
    if (image === undefined) return 'absent';
    if (!(await this.#mayUse(container.image, image, credentials, signal))) return 'not-permitted';
    request.inspected.set(reference, image);
    const text = `Container image "${container.image}" already present on machine and can be accessed by the pod`;
    this.#event(request, 'Normal', 'Pulled', text);
    return { ok: true, image: factsOf(image.id, image), id: image.id };
  }

  /** The inspection of an image is invalid after the removal of the image. */
  #inspectedImage({ inspected }: ImageRequest, reference: string): Image | undefined {
    const image = inspected.get(reference);
    return image === undefined || this.#deps.leases.wasRemoved(image.id) ? undefined : image;
  }

  /**
   * With invalid credentials the image counts as inaccessible; the following pull reports why they
   * are invalid.
   */
  async #mayUse(
    name: string,
    { id }: Image,
    credentials: GetCredentials,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { pullRecords } = this.#deps;
    if (pullRecords === undefined) return true;
    try {
      return await pullRecords.mayUse(name, id, credentials, signal);
    } catch {
      signal.throwIfAborted();
      return false;
    }
  }

  async #inspect(pod: Pod, image: string, signal: AbortSignal): Promise<Image | undefined> {
    const annotations = pod.metadata.annotations ?? {};
    return (await this.#deps.cri.imageStatus({ image: { image, annotations } }, signal)).image;
  }

  #neverPulled(request: ImageRequest): Ensured {
    const message = `Container image "${request.container.image}" is not present with pull policy of Never`;
    this.#event(request, 'Warning', 'ErrImageNeverPull', message);
    return { ok: false, reason: 'ErrImageNeverPull', message };
  }

  async #pullUnlessBackingOff(
    request: ImageRequest,
    pull: PendingPull,
    signal: AbortSignal,
  ): Promise<Ensured> {
    const { image } = request.container;
    const key = backoffKey(request.pod.metadata.uid, image);
    const waitMs = this.#backoff.remainingMs(key, { nowMs: this.#deps.clock.monotonicMs() });
    const fingerprint = await this.#fingerprint(request.pod, signal);
    const isSame = (this.#lastErrors.peek(key)?.fingerprint ?? fingerprint) === fingerprint;
    if (waitMs > 0 && isSame) return this.#backingOff(request, key, waitMs);
    // The pull was allowed despite the back-off because the secrets have changed, so earlier
    // failures no longer count.
    if (waitMs > 0) this.#backoff.delete(key);
    this.#lastErrors.delete(key);
    this.#event(request, 'Normal', 'Pulling', `Pulling image "${image}"`);
    const startMs = this.#deps.clock.monotonicMs();
    try {
      const pulled = await this.#pullWithRecord(request, pull, signal);
      this.#recordPulled(request, pulled, this.#deps.clock.monotonicMs() - startMs);
      if (pulled.image !== undefined) request.inspected.set(pull.reference, pulled.image);
      const id = pulled.image?.id ?? pulled.imageRef;
      return { ok: true, image: factsOf(pulled.imageRef, pulled.image), id };
    } catch (error) {
      signal.throwIfAborted();
      return this.#pullFailed(request, key, fingerprint, error);
    }
  }

  async #fingerprint(pod: Pod, signal: AbortSignal): Promise<string> {
    try {
      return await this.#deps.credentials.fingerprint(pod, signal);
    } catch {
      signal.throwIfAborted();
      return '';
    }
  }

  /** Pulls the image; records the intent before the pull and its outcome afterwards. */
  async #pullWithRecord(
    request: ImageRequest,
    wanted: PendingPull,
    signal: AbortSignal,
  ): Promise<PulledImage> {
    const { image } = request.container;
    const { pullRecords } = this.#deps;
    const credentials = await wanted.credentials();
    if (pullRecords === undefined) return await this.#pull(request, wanted, credentials, signal);
    await pullRecords.begin(image, signal);
    let end: PullEnd = { kind: 'unknown' };
    try {
      const pulled = await this.#pull(request, wanted, credentials, signal);
      const used = pulled.used === undefined ? 'anonymous' : credentials[pulled.used];
      end = { kind: 'pulled', imageRef: pulled.imageRef, used: used ?? 'anonymous' };
      return pulled;
    } catch (error) {
      if (!signal.aborted && !isKind(error, 'Unavailable', 'DeadlineExceeded')) end = { kind: 'failed' };
      throw error;
    } finally {
      await pullRecords.end(image, end);
    }
  }

  async #pull(
    request: ImageRequest,
    { reference: image, presence }: PendingPull,
    credentials: readonly PullCredential[],
    signal: AbortSignal,
  ): Promise<PulledImage> {
    const { pod, container, sandboxConfig } = request;
    const annotations = pod.metadata.annotations ?? {};
    const pull = { image, annotations, sandboxConfig, credentials, presence } as const;
    const changes = {
      uid: pod.metadata.uid,
      container: container.name,
      image: container.image,
      status: () => this.#pulls.status(pull),
      event: (type: PodEvent['type'], message: string) => this.#event(request, type, 'PullProgress', message),
    };
    using _news = reportPull(changes, this.#deps);
    return await this.#pulls.pull(pull, signal);
  }

  #backingOff(request: ImageRequest, key: string, waitMs: number): Ensured {
    const text = `Back-off pulling image "${request.container.image}"`;
    this.#event(request, 'Normal', 'BackOff', text);
    const last = this.#lastErrors.peek(key);
    const message = last === undefined ? text : `${text}: ${last.text}`;
    return { ok: false, reason: 'ImagePullBackOff', message, waitMs };
  }

  #recordPulled(request: ImageRequest, pulled: PulledImage, allMs: number): void {
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

  #pullFailed(request: ImageRequest, key: string, fingerprint: string, error: unknown): Ensured {
    const { image, name } = request.container;
    const text = describeError(error);
    this.#event(request, 'Warning', 'Failed', `Failed to pull image "${image}": ${text}`);
    this.#backoff.fail(key, { nowMs: this.#deps.clock.monotonicMs() });
    const failure = pullFailure(image, text);
    this.#lastErrors.set(key, { text: `${failure.reason}: ${failure.message}`, fingerprint });
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

function factsOf(ref: string, image: Image | undefined): ImageFacts {
  return { ref, uid: image?.uid?.value, username: image?.username ?? '' };
}

/**
 * Returns the waiting reason and the message for a failed pull; some runtimes begin their error
 * message with the reason.
 */
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
