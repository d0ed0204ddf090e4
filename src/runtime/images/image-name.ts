import { bareImageName, readImageName } from '../../pods/index.ts';

const dockerHub = 'docker.io';
const oldDockerHub = 'index.docker.io';

/** With its registry, without tag and digest, as credentials are looked up by: `docker.io/library/a` for `a:1`. */
export function repositoryOf(text: string): string {
  const bare = bareImageName(text);
  const [first = '', ...rest] = bare.split('/');
  const isHost = rest.length > 0 && (/[.:]|[A-Z]/.test(first) || first === 'localhost');
  const host = isHost ? first : dockerHub;
  const path = isHost ? rest.join('/') : bare;
  if (host !== dockerHub && host !== oldDockerHub) return `${host}/${path}`;
  return `${dockerHub}/${path.includes('/') ? path : `library/${path}`}`;
}

/** The whole name with registry and with tag or digest: the same for all names of the same thing. */
export function fullImageName(text: string): string {
  const read = readImageName(text);
  if (!read.ok) return text;
  const { tag: tagText, digest: digestText } = read;
  return `${repositoryOf(text)}${digestText === '' ? `:${tagText}` : `@${digestText}`}`;
}

/** A registry as credentials name it: a host of parts between dots, maybe a port, maybe the beginning of a path. */
interface RegistryPattern {
  readonly parts: readonly string[];
  readonly port: string;
  readonly path: string;
}

/**
 * Whether an image of that repository is what the key means. In the key each part of the host may hold wildcards that
 * reach no further than the part; the port must be the same and the path the beginning of the repository's.
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

/** The key by which credentials are found: without scheme, and without what only versions of the protocol. */
export function registryKey(location: string): string {
  const bare = location.replace(/^https?:\/\//, '');
  const slash = bare.indexOf('/');
  if (slash < 0) return bare;
  const host = bare.slice(0, slash);
  const path = bare.slice(slash).replace(/^\/v[12](?=\/)/, '');
  return path === '/' ? host : host + path;
}

/** Whether a repository is at Docker Hub, however its name says so. */
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

/** One place of a glob: any run of characters, or one character of some kind. */
/** No host and no path of a registry is longer. */
const longestGlob = 1_024;

type GlobPlace = 'run' | ((character: string) => boolean);

/**
 * Shell wildcards: `*`, `?` and sets in brackets. A pattern that is none fits nothing. Takes no longer than both lengths
 * multiplied: whoever may write a secret writes the pattern and the name, and must not be able to hold up the node.
 */
function globFits(glob: string, text: string): boolean {
  if (!/[*?[\\]/.test(glob)) return glob === text;
  if (glob.length > longestGlob) return false;
  const places = readGlob(glob);
  if (places === undefined) return false;
  // Where the last run began, in the glob and in the text: only that one is ever made longer.
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
