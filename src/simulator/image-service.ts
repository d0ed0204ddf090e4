import type {
  ImageFsInfoResponse,
  ImageStatusRequest,
  ImageStatusResponse,
  ListImagesResponse,
  PullImageRequest,
  PullImageResponse,
  RemoveImageRequest,
} from '../cri/index.ts';
import { GrpcError } from '../lib/grpc/index.ts';
import type { MessageInit } from '../lib/protobuf/index.ts';
import type { CallContext, SimulatorContext } from './context.ts';
import { formatReference, parseImageReference } from './image-reference.ts';
import { imageMessage, type StoredImage } from './image-store.ts';
import { failed, inContext } from './refusals.ts';
import { checkCredentials, type ImageRegistry, type RegistryImage, registryFailure } from './registry.ts';
import { shuffled } from './shuffle.ts';

const defaultPullMs = 100;
const inodesPerImage = 250n;

/** Images: what is there, and how more come from the registry. */
export class ImageOperations {
  readonly #context: SimulatorContext;
  readonly #registry: ImageRegistry;
  readonly #imageFsPath: string;
  /** How often each image failed so far; of images that fail a number of times. */
  readonly #failures = new Map<string, number>();

  constructor(context: SimulatorContext, registry: ImageRegistry, imageFsPath: string) {
    this.#context = context;
    this.#registry = registry;
    this.#imageFsPath = imageFsPath;
  }

  /** All of them: the real runtime takes a filter and ignores it. */
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
    const asked = image?.image ?? '';
    const parsed = parseImageReference(asked);
    if (!parsed.ok) throw failed(`failed to parse image reference "${asked}": ${parsed.why}`);
    const reference = formatReference(parsed.reference);
    const offered = this.#registry(reference);
    const { work, images, trace } = this.#context;
    if (typeof offered === 'string') {
      await work.pause(defaultPullMs, call.signal);
      throw registryFailure(reference, offered);
    }
    await work.pause(offered.pullMs ?? defaultPullMs, call.signal);
    checkCredentials(offered, reference, auth);
    this.#checkFailure(offered, reference);
    const stored = images.addPulled(offered, reference);
    trace.add({ kind: 'image-pulled', reference });
    return { imageRef: stored.id };
  }

  remove({ image }: RemoveImageRequest): object {
    const { images, trace } = this.#context;
    const asked = image?.image ?? '';
    const found = this.#resolve(asked);
    if (found === undefined) return {};
    images.remove(found);
    trace.add({ kind: 'image-removed', reference: asked });
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
