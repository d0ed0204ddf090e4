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
