/** An image reference with all default parts, as containerd stores it. */
export interface ImageReference {
  readonly repository: string;
  readonly tag: string | undefined;
  readonly digest: string | undefined;
  readonly host: string;
}

export type ParsedReference =
  | { readonly ok: true; readonly reference: ImageReference }
  | { readonly ok: false; readonly why: string };

const defaultHost = 'docker.io';
const digestPattern = /^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-fA-F]{32,}$/;
const tagPattern = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;
const pathPattern = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;

/**
 * Parses an image reference as users write it: `busybox`, `example.com/app:1`, `app@sha256:…`. A
 * digest overrides the tag.
 */
export function parseImageReference(text: string): ParsedReference {
  const [named = '', digest, ...more] = text.split('@');
  const { name, tag } = splitTag(named);
  if (name === '' || more.length > 0) return bad('invalid reference format');
  const { host, path } = splitHost(name);
  if (path !== path.toLowerCase()) return bad('invalid reference format: repository name must be lowercase');
  const wrong =
    !path.split('/').every((part) => pathPattern.test(part)) ||
    (tag !== undefined && !tagPattern.test(tag)) ||
    (digest !== undefined && !digestPattern.test(digest));
  if (wrong) return bad('invalid reference format');
  const repository = `${host}/${path}`;
  if (digest !== undefined) return { ok: true, reference: { repository, host, digest, tag: undefined } };
  return { ok: true, reference: { repository, host, digest: undefined, tag: tag ?? 'latest' } };
}

export function formatReference({ repository, tag, digest }: ImageReference): string {
  return digest === undefined ? `${repository}:${tag}` : `${repository}@${digest}`;
}

/** The image reference as containerd stores it; undefined for an invalid reference. */
export function normalizeReference(text: string): string | undefined {
  const parsed = parseImageReference(text);
  return parsed.ok ? formatReference(parsed.reference) : undefined;
}

function bad(why: string): ParsedReference {
  return { ok: false, why };
}

/**
 * Splits off the tag, which begins at a colon after the last slash; an earlier colon belongs to a
 * port.
 */
function splitTag(named: string): { readonly name: string; readonly tag: string | undefined } {
  const colon = named.indexOf(':', named.lastIndexOf('/') + 1);
  return colon < 0
    ? { name: named, tag: undefined }
    : { name: named.slice(0, colon), tag: named.slice(colon + 1) };
}

/**
 * Splits off the host if the first part looks like one; otherwise the image belongs to the default
 * registry.
 */
function splitHost(name: string): { readonly host: string; readonly path: string } {
  const slash = name.indexOf('/');
  const first = name.slice(0, Math.max(slash, 0));
  if (first.includes('.') || first.includes(':') || first === 'localhost') {
    const path = name.slice(slash + 1);
    return { host: first, path: first === defaultHost && !path.includes('/') ? `library/${path}` : path };
  }
  return { host: defaultHost, path: slash < 0 ? `library/${name}` : name };
}
