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

/** Shell wildcards: `*`, `?` and sets in brackets. A pattern that is none fits nothing. */
function globFits(glob: string, text: string): boolean {
  if (!/[*?[\\]/.test(glob)) return glob === text;
  const source = glob.replaceAll(/\[\^?[^\]]+\]|\\.|[\s\S]/g, (token) => {
    if (token === '*') return '[^/]*';
    if (token === '?') return '[^/]';
    if (token.length > 1 && token.startsWith('[')) return token;
    return escapeRegExp(token.startsWith('\\') ? token.slice(1) : token);
  });
  try {
    return new RegExp(`^${source}$`).test(text);
  } catch {
    return false;
  }
}

function escapeRegExp(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
