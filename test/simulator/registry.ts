import type { AuthConfig } from '../../src/cri/index.ts';
import { type GrpcCode, GrpcError } from '../../src/protocols/grpc/index.ts';
import { normalizeReference, parseImageReference } from './image-reference.ts';
import { manifestDigest, type SimulatedImage } from './image-store.ts';

/** An image that can be pulled, and the behaviour of the pull. */
export interface RegistryImage extends SimulatedImage {
  /** The duration of the pull; 100 ms by default. */
  readonly pullMs?: number;
  /** The error of pulling the image; after `times` failures the pull succeeds. */
  readonly failure?: { readonly code: GrpcCode; readonly message: string; readonly times?: number };
  /** The credentials required to pull the image; by default none. */
  readonly credentials?: { readonly username: string; readonly password: string };
}

/** Looks up an image by its full reference. */
export type ImageRegistry = (reference: string) => RegistryImage | 'not-found' | 'unreachable';

/**
 * A registry with the given images, by tag and by digest; hosts without any of them are
 * unreachable.
 */
export function registryOf(images: readonly RegistryImage[]): ImageRegistry {
  const offered = new Map<string, RegistryImage>();
  const hosts = new Set<string>();
  for (const image of images) {
    const parsed = parseImageReference(image.reference);
    const reference = normalizeReference(image.reference);
    if (!parsed.ok || reference === undefined) continue;
    hosts.add(parsed.reference.host);
    offered.set(reference, image);
    offered.set(`${parsed.reference.repository}@${manifestDigest(image)}`, image);
  }
  return (reference) =>
    offered.get(reference) ?? (hosts.has(hostOf(reference)) ? 'not-found' : 'unreachable');
}

/** A registry that has every requested image, all with the same behaviour. */
export function registryOfAnything(like: Omit<RegistryImage, 'reference'> = {}): ImageRegistry {
  return (reference) => ({ ...like, reference });
}

function hostOf(reference: string): string {
  return reference.slice(0, reference.indexOf('/'));
}

/** The runtime's error when the registry does not have the image. */
export function registryFailure(reference: string, response: 'not-found' | 'unreachable'): GrpcError {
  const context = `failed to pull and unpack image "${reference}": failed to resolve reference "${reference}"`;
  if (response === 'not-found') return new GrpcError('NOT_FOUND', `${context}: ${reference}: not found`);
  const host = hostOf(reference);
  const [name = '', tag = 'latest'] = reference.slice(host.length + 1).split(/[@:](.*)/s);
  return new GrpcError(
    'UNKNOWN',
    `${context}: failed to do request: Head "https://${host}/v2/${name}/manifests/${tag}": dial tcp ${host}: connect: connection refused`,
  );
}

/** Throws a registry's error when the credentials may not pull the image. */
export function checkCredentials(
  image: RegistryImage,
  reference: string,
  auth: AuthConfig | undefined,
): void {
  if (image.credentials === undefined) return;
  const given = credentialsOf(auth);
  const { username, password } = image.credentials;
  if (given?.username === username && given.password === password) return;
  throw new GrpcError(
    'UNKNOWN',
    `failed to pull and unpack image "${reference}": failed to resolve reference "${reference}": pull access denied, ` +
      'repository does not exist or may require authorization: server message: insufficient_scope: authorization failed',
  );
}

function credentialsOf(
  auth: AuthConfig | undefined,
): { readonly username: string; readonly password: string } | undefined {
  if (auth === undefined) return undefined;
  if (auth.username !== '') return { username: auth.username, password: auth.password };
  if (auth.auth === '') return undefined;
  const [username = '', ...password] = Buffer.from(auth.auth, 'base64').toString().split(':');
  return { username, password: password.join(':') };
}
