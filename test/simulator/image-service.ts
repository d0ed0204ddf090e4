import type {
  ImageFsInfoResponse,
  ImageStatusRequest,
  ImageStatusResponse,
  ListContentResponse,
  ListImagesResponse,
  ListStatusesResponse,
  PullImageRequest,
  PullImageResponse,
  RemoveImageRequest,
} from '../../src/cri/index.ts';
import { GrpcError } from '../../src/protocols/grpc/index.ts';
import type { MessageInit } from '../../src/protocols/protobuf/index.ts';
import type { CallContext, SimulatorContext } from './context.ts';
import { formatReference, parseImageReference } from './image-reference.ts';
import { defaultSizeBytes, imageMessage, type StoredImage } from './image-store.ts';
import { failed, inContext } from './refusals.ts';
import { checkCredentials, type ImageRegistry, type RegistryImage, registryFailure } from './registry.ts';
import { shuffled } from './shuffle.ts';

const defaultPullMs = 100;
const inodesPerImage = 250n;

interface ArrivingImage {
  readonly reference: string;
  readonly beganMs: number;
  readonly pullMs: number;
  readonly bytes: number;
}

/** The CRI image service: lists images and pulls them from the registry. */
export class ImageOperations {
  readonly #context: SimulatorContext;
  readonly #registry: ImageRegistry;
  readonly #imageFsPath: string;
  /** How often each image failed so far, for images that fail a limited number of times. */
  readonly #failures = new Map<string, number>();

  readonly #arriving = new Set<ArrivingImage>();

  constructor(context: SimulatorContext, registry: ImageRegistry, imageFsPath: string) {
    this.#context = context;
    this.#registry = registry;
    this.#imageFsPath = imageFsPath;
  }

  /** Lists all images, because the real runtime ignores the filter. */
  list(): MessageInit<ListImagesResponse> {
    const { images, random } = this.#context;
    return { images: shuffled(images.list(), random).map(imageMessage) };
  }

  status({ image, verbose }: ImageStatusRequest): MessageInit<ImageStatusResponse> {
    const found = this.#resolve(image?.image ?? '');
    if (found === undefined) return {};
    return { image: imageMessage(found), info: verbose ? infoOf(found) : {} };
  }

  async pull({ image, auth }: PullImageRequest, call: CallContext): Promise<PullImageResponse> {
    const requested = image?.image ?? '';
    const parsed = parseImageReference(requested);
    if (!parsed.ok) throw failed(`failed to parse image reference "${requested}": ${parsed.why}`);
    const reference = formatReference(parsed.reference);
    const offered = this.#registry(reference);
    const { work, images, trace } = this.#context;
    if (typeof offered === 'string') {
      await work.pause(defaultPullMs, call.signal);
      throw registryFailure(reference, offered);
    }
    await this.#bring(offered, reference, call);
    checkCredentials(offered, reference, auth);
    this.#checkFailure(offered, reference);
    const stored = images.addPulled(offered, reference);
    trace.add({ kind: 'image-pulled', reference });
    return { imageRef: stored.id };
  }

  /** The progress of the pulls: the downloaded data is proportional to the elapsed time. */
  ingests(): MessageInit<ListStatusesResponse> {
    const nowMs = this.#context.clock.monotonicMs();
    // Pulls that were killed with the runtime are removed here, because they never report their
    // end.
    for (const each of this.#arriving) if (nowMs - each.beganMs > each.pullMs) this.#arriving.delete(each);
    const statuses = [...this.#arriving].map(({ reference, beganMs, pullMs, bytes }) => ({
      ref: `layer-${reference}`,
      offset: BigInt(Math.floor(bytes * Math.min(1, (nowMs - beganMs) / Math.max(pullMs, 1)))),
      total: BigInt(bytes),
    }));
    return { statuses };
  }

  /** The manifests of the images that are being pulled, each with its config and its only layer. */
  arrivingContent(): MessageInit<ListContentResponse> {
    const info = [...this.#arriving].map(({ reference }) => {
      const slash = reference.indexOf('/');
      const path = reference.slice(slash + 1).replace(/[:@].*/s, '');
      const source = `containerd.io/distribution.source.${reference.slice(0, slash)}`;
      const labels = { [source]: path, 'containerd.io/gc.ref.content.l.0': reference };
      return { digest: `manifest of ${reference}`, labels };
    });
    return { info };
  }

  async #bring(offered: RegistryImage, reference: string, call: CallContext): Promise<void> {
    const { work, clock } = this.#context;
    const { pullMs = defaultPullMs, sizeBytes: bytes = defaultSizeBytes } = offered;
    const arriving = { reference, beganMs: clock.monotonicMs(), pullMs, bytes };
    this.#arriving.add(arriving);
    try {
      await work.pause(pullMs, call.signal);
    } finally {
      this.#arriving.delete(arriving);
    }
  }

  remove({ image }: RemoveImageRequest): object {
    const { images, trace } = this.#context;
    const requested = image?.image ?? '';
    const found = this.#resolve(requested);
    if (found === undefined) return {};
    images.remove(found);
    trace.add({ kind: 'image-removed', reference: requested });
    return {};
  }

  fsInfo(): MessageInit<ImageFsInfoResponse> {
    const { images, store, nowNs } = this.#context;
    const containers = store.containers.all();
    const written = containers.reduce((sum, record) => sum + record.files.ownBytes, 0);
    return {
      imageFilesystems: [
        {
          timestamp: nowNs(),
          fsId: { mountpoint: this.#imageFsPath },
          usedBytes: { value: BigInt(images.totalBytes + written) },
          inodesUsed: { value: BigInt(images.list().length) * inodesPerImage },
        },
      ],
    };
  }

  #resolve(text: string): StoredImage | undefined {
    try {
      return this.#context.images.resolve(text);
    } catch (error) {
      throw inContext(`can not resolve "${text}" locally`, error);
    }
  }

  #checkFailure({ failure }: RegistryImage, reference: string): void {
    if (failure === undefined) return;
    const before = this.#failures.get(reference) ?? 0;
    if (failure.times !== undefined) {
      if (before >= failure.times) return;
      this.#failures.set(reference, before + 1);
    }
    throw new GrpcError(failure.code, `failed to pull and unpack image "${reference}": ${failure.message}`);
  }
}

function infoOf({ id, definition }: StoredImage): Readonly<Record<string, string>> {
  const { entrypoint, command, env, user, workingDir, stopSignal } = definition;
  const config = {
    Entrypoint: entrypoint,
    Cmd: command,
    Env: Object.entries(env ?? {}).map(([key, value]) => `${key}=${value}`),
    User: user,
    WorkingDir: workingDir,
    StopSignal: stopSignal,
  };
  return { info: JSON.stringify({ chainID: id, imageSpec: { os: 'linux', config } }) };
}
