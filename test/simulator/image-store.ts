import { createHash } from 'node:crypto';
import type { Image } from '../../src/cri/index.ts';
import { GrpcError } from '../../src/protocols/grpc/index.ts';
import type { MessageInit } from '../../src/protocols/protobuf/index.ts';
import { formatReference, normalizeReference, parseImageReference } from './image-reference.ts';
import type { ContainerScript } from './script.ts';

/** The definition of an image. */
export interface SimulatedImage {
  /** The name of the image, for example `localhost/app:1`. */
  readonly reference: string;
  readonly sizeBytes?: number;
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The user of the image, a number or a name. */
  readonly user?: string;
  readonly workingDir?: string;
  /** The stop signal, for example SIGQUIT; TERM by default. */
  readonly stopSignal?: string;
  readonly pinned?: boolean;
  /** The behaviour of this image's containers; by default their command line defines it. */
  readonly script?: ContainerScript;
}

/** An image in the runtime's store. */
export interface StoredImage {
  readonly definition: SimulatedImage;
  /** The digest of the image configuration, which is the ID of the image in the runtime. */
  readonly id: string;
  readonly repoTags: readonly string[];
  readonly repoDigests: readonly string[];
}

export const defaultSizeBytes = 2_000_000;

/** The images of the runtime, by ID and by every reference. */
export class ImageStore {
  readonly #byId = new Map<string, StoredImage>();
  readonly #idOf = new Map<string, string>();

  /** Adds an image as imported from an archive: it can be found by its name only. */
  import(definition: SimulatedImage): StoredImage {
    return this.#add(definition, [referenceOf(definition)]);
  }

  /**
   * Adds an image as pulled: it can be found by its digest, and by its tag if it was pulled by tag.
   */
  addPulled(definition: SimulatedImage, asked: string): StoredImage {
    const parsed = parseImageReference(asked);
    const references = [asked];
    if (parsed.ok && parsed.reference.digest === undefined) {
      references.push(formatReference({ ...parsed.reference, digest: manifestDigest(definition) }));
    }
    return this.#add(definition, references);
  }

  /** Finds an image by name, by ID with or without the algorithm, or by a prefix of the ID. */
  resolve(text: string): StoredImage | undefined {
    const known = this.#byId.get(text);
    if (known !== undefined) return known;
    const normalized = normalizeReference(text);
    const id = normalized === undefined ? undefined : this.#idOf.get(normalized);
    return id === undefined ? this.#byPrefix(text) : this.#byId.get(id);
  }

  byId(id: string): StoredImage | undefined {
    return this.#byId.get(id);
  }

  list(): readonly StoredImage[] {
    return [...this.#byId.values()];
  }

  /** Removes an image with all its names. */
  remove(image: StoredImage): void {
    this.#byId.delete(image.id);
    for (const [reference, id] of this.#idOf) if (id === image.id) this.#idOf.delete(reference);
  }

  clear(): void {
    this.#byId.clear();
    this.#idOf.clear();
  }

  get totalBytes(): number {
    let total = 0;
    for (const { definition } of this.#byId.values()) total += definition.sizeBytes ?? defaultSizeBytes;
    return total;
  }

  #add(definition: SimulatedImage, references: readonly string[]): StoredImage {
    const id = `sha256:${digestOf(`config ${definition.reference}`)}`;
    for (const reference of references) this.#claim(reference, id);
    const all = [...this.#idOf].filter(([, owner]) => owner === id).map(([reference]) => reference);
    const image: StoredImage = {
      definition,
      id,
      repoTags: all.filter((reference) => !reference.includes('@')),
      repoDigests: all.filter((reference) => reference.includes('@')),
    };
    this.#byId.set(id, image);
    return image;
  }

  /** Assigns a name to an image; a previous image with this name loses it. */
  #claim(reference: string, id: string): void {
    const before = this.#byId.get(this.#idOf.get(reference) ?? '');
    this.#idOf.set(reference, id);
    if (before === undefined || before.id === id) return;
    this.#byId.set(before.id, {
      ...before,
      repoTags: before.repoTags.filter((tag) => tag !== reference),
      repoDigests: before.repoDigests.filter((digest) => digest !== reference),
    });
  }

  #byPrefix(text: string): StoredImage | undefined {
    const prefix = text.startsWith('sha256:') ? text : `sha256:${text}`;
    let found: StoredImage | undefined;
    for (const image of this.#byId.values()) {
      if (!image.id.startsWith(prefix)) continue;
      if (found !== undefined) throw new GrpcError('UNKNOWN', 'ambiguous digest string');
      found = image;
    }
    return found;
  }
}

export function imageMessage({ definition, id, repoTags, repoDigests }: StoredImage): MessageInit<Image> {
  const { user = '', sizeBytes = defaultSizeBytes, pinned = false } = definition;
  const [name = ''] = user.split(':');
  return {
    id,
    repoTags,
    repoDigests,
    size: BigInt(sizeBytes),
    pinned,
    ...(/^\d+$/.test(name) ? { uid: { value: BigInt(name) } } : { username: name }),
  };
}

/** The digest under which a registry offers the image. */
export function manifestDigest(definition: SimulatedImage): string {
  return `sha256:${digestOf(`manifest ${definition.reference}`)}`;
}

function referenceOf(definition: SimulatedImage): string {
  const reference = normalizeReference(definition.reference);
  if (reference !== undefined) return reference;
  throw new GrpcError('INVALID_ARGUMENT', `${definition.reference} is no image reference`);
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
