import { bareImageName, readImageName } from '../../pods/index.ts';

const dockerHub = 'docker.io';
const oldDockerHub = 'index.docker.io';

/**
 * Returns the repository of an image with registry, without tag and digest, as used for credential
 * lookup: `docker.io/library/a` for `a:1`.
 */
export function repositoryOf(text: string): string {
  const bare = bareImageName(text);
  const [first = '', ...rest] = bare.split('/');
  const isHost = rest.length > 0 && (/[.:]|[A-Z]/.test(first) || first === 'localhost');
  const host = isHost ? first : dockerHub;
  const path = isHost ? rest.join('/') : bare;
  if (host !== dockerHub && host !== oldDockerHub) return `${host}/${path}`;
  return `${dockerHub}/${path.includes('/') ? path : `library/${path}`}`;
}

/**
 * Returns the normalized image name with registry and with tag or digest; equal for all names of
 * one image.
 */
export function fullImageName(text: string): string {
  const read = readImageName(text);
  if (!read.ok) return text;
  const { tag: tagText, digest: digestText } = read;
  return `${repositoryOf(text)}${digestText === '' ? `:${tagText}` : `@${digestText}`}`;
}

/** The registry in a credential key: host parts, optional port and optional path prefix. */
interface RegistryPattern {
  readonly parts: readonly string[];
  readonly port: string;
  readonly path: string;
}

/**
 * Whether a repository matches a credential key. Wildcards in the key match within one host part;
 * the port must be equal and the path a prefix.
 */
export function matchesRegistry(key: string, repository: string): boolean {
  const pattern = readPattern(key);
  const target = readPattern(repository);
  return (
    pattern.port === target.port &&
    pattern.parts.length === target.parts.length &&
    target.path.startsWith(pattern.path) &&
    pattern.parts.every((part, index) => globFits(part, target.parts[index] ?? ''))
  );
}

/** Normalizes a registry to its credential key, without scheme and API version. */
export function registryKey(location: string): string {
  const bare = location.replace(/^https?:\/\//, '');
  const slash = bare.indexOf('/');
  if (slash < 0) return bare;
  const host = bare.slice(0, slash);
  const path = bare.slice(slash).replace(/^\/v[12](?=\/)/, '');
  return path === '/' ? host : host + path;
}

/** Whether a repository is on Docker Hub. */
export function isDockerHub(repository: string): boolean {
  const [first = '', ...rest] = repository.split('/');
  if (first === '') return false;
  if (rest.length === 0 || first === 'docker.io' || first === 'index.docker.io') return true;
  return !/[.:]/.test(first);
}

function readPattern(text: string): RegistryPattern {
  const slash = text.indexOf('/');
  const host = slash < 0 ? text : text.slice(0, slash);
  const path = slash < 0 ? '' : text.slice(slash);
  const [, name = host, port = ''] = /^(\[[^\]]*\]|[^:]*):(\d*)$/.exec(host) ?? [];
  return { parts: name.split('.'), port, path };
}

/**
 * The maximum length of a glob pattern. Longer patterns match nothing, because no registry name is
 * that long.
 */
const longestGlob = 1_024;

/** One token of a glob pattern: any run of characters, or one character of a set. */
type GlobPlace = 'run' | ((character: string) => boolean);

/**
 * Matches a text with a glob pattern of `*`, `?` and bracket sets; an invalid pattern matches
 * nothing. The time is at most the product of both lengths, because users can choose both.
 */
function globFits(glob: string, text: string): boolean {
  if (!/[*?[\\]/.test(glob)) return glob === text;
  if (glob.length > longestGlob) return false;
  const places = readGlob(glob);
  if (places === undefined) return false;
  // The position of the last `*` in the pattern, and of its match in the text. On a mismatch, only
  // the match of this `*` is extended.
  let back: { readonly at: number; from: number } | undefined;
  let at = 0;
  let from = 0;
  while (from < text.length) {
    const place = places[at];
    if (place === 'run') back = { at: at++, from };
    else if (place?.(text.charAt(from)) === true) {
      at++;
      from++;
    } else if (back !== undefined) {
      from = ++back.from;
      at = back.at + 1;
    } else return false;
  }
  return places.slice(at).every((place) => place === 'run');
}

function readGlob(glob: string): readonly GlobPlace[] | undefined {
  try {
    return (glob.match(/\[\^?[^\]]+\]|\\.|[\s\S]/g) ?? []).map(readPlace);
  } catch {
    return undefined;
  }
}

function readPlace(token: string): GlobPlace {
  if (token === '*') return 'run';
  if (token === '?') return () => true;
  if (token.length > 1 && token.startsWith('[')) {
    const set = new RegExp(`^${token}$`);
    return (character) => set.test(character);
  }
  const meant = token.startsWith('\\') ? token.slice(1) : token;
  return (character) => character === meant;
}
