import type { AuthConfig } from '../../src/cri/index.ts';
import { type GrpcCode, GrpcError } from '../../src/protocols/grpc/index.ts';
import { normalizeReference, parseImageReference } from './image-reference.ts';
import { manifestDigest, type SimulatedImage } from './image-store.ts';

/** An image that can be pulled, and how that goes. */
export interface RegistryImage extends SimulatedImage {
  /** 100 ms unless given. */
  readonly pullMs?: number;
  /** Pulling it fails like this; after `times` failures it works. */
  readonly failure?: { readonly code: GrpcCode; readonly message: string; readonly times?: number };
  /** Who may pull it; anybody unless given. */
  readonly credentials?: { readonly username: string; readonly password: string };
}

/** Where images come from: asked with a full reference, and nobody may answer. */
export type ImageRegistry = (reference: string) => RegistryImage | 'not-found' | 'unreachable';

/** Offers the images given, by tag and by digest; nobody answers at hosts that offer none of them. */
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

/** Has every image anybody asks for, all with the same behaviour. */
export function registryOfAnything(like: Omit<RegistryImage, 'reference'> = {}): ImageRegistry {
  return (reference) => ({ ...like, reference });
}

function hostOf(reference: string): string {
  return reference.slice(0, reference.indexOf('/'));
}

/** What the runtime says when the registry has nothing for it. */
export function registryFailure(reference: string, answer: 'not-found' | 'unreachable'): GrpcError {
  const context = `failed to pull and unpack image "${reference}": failed to resolve reference "${reference}"`;
  if (answer === 'not-found') return new GrpcError('NOT_FOUND', `${context}: ${reference}: not found`);
  const host = hostOf(reference);
  const [name = '', tag = 'latest'] = reference.slice(host.length + 1).split(/[@:](.*)/s);
  return new GrpcError(
    'UNKNOWN',
    `${context}: failed to do request: Head "https://${host}/v2/${name}/manifests/${tag}": dial tcp ${host}: connect: connection refused`,
  );
}

/** Refuses whoever may not pull the image, in the words of a registry. */
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
