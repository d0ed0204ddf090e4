import { KubelingError } from '../../../lib/index.ts';

/** Who to be at a registry. */
export interface RegistryLogin {
  readonly username: string;
  readonly password: string;
  readonly email: string;
}

/** By registry, as the file writes it: a host, maybe with scheme, port and path. */
export type DockerConfig = ReadonlyMap<string, RegistryLogin>;

/** The newer form, with everything under `auths`. Throws IMAGE_CREDENTIALS, which tells nothing of the content. */
export function parseDockerConfigJson(text: string, what: string): DockerConfig {
  return readLogins(recordIn(parse(text, what), what)['auths'], what);
}

/** The older form, `.dockercfg`: registries right at the top. */
export function parseDockerCfg(text: string, what: string): DockerConfig {
  return readLogins(parse(text, what), what);
}

function parse(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own words quote the text, and the text is a secret.
    throw bad(what, 'it must hold JSON');
  }
}

function readLogins(value: unknown, what: string): DockerConfig {
  if (value === undefined || value === null) return new Map();
  const logins = new Map<string, RegistryLogin>();
  for (const [registry, entry] of Object.entries(recordIn(value, what))) {
    logins.set(registry, readLogin(recordIn(entry ?? {}, what), `${what}, registry ${registry}`));
  }
  return logins;
}

function readLogin(entry: Readonly<Record<string, unknown>>, what: string): RegistryLogin {
  const field = (name: string): string => {
    const value = entry[name] ?? '';
    if (typeof value !== 'string') throw bad(what, `its ${name} must be text`);
    return value;
  };
  const email = field('email');
  const auth = field('auth');
  if (auth === '') return { username: field('username'), password: field('password'), email };
  return { ...readAuth(auth, what), email };
}

/** `auth` holds `user:password` in base64, which some tools write without its padding. It wins over the plain fields. */
function readAuth(auth: string, what: string): { readonly username: string; readonly password: string } {
  const text = auth.replaceAll(/[\r\n]/g, '');
  const isSound = text.trim().endsWith('=') ? padded.test(text) : unpadded.test(text);
  if (!isSound || text.replace(/={1,2}$/, '').length % 4 === 1) throw bad(what, 'its auth must be base64');
  const decoded = Buffer.from(text, 'base64').toString('utf8');
  const colon = decoded.indexOf(':');
  if (colon < 0) throw bad(what, 'its auth must be base64 of user:password');
  return { username: decoded.slice(0, colon), password: decoded.slice(colon + 1) };
}

const padded = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)$/;
const unpadded = /^[A-Za-z0-9+/]*$/;

function recordIn(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw bad(what, 'it must be an object with registries');
  }
  return value as Readonly<Record<string, unknown>>;
}

function bad(what: string, why: string): KubelingError {
  return new KubelingError('IMAGE_CREDENTIALS', `Cannot use the credentials of ${what} as ${why}`);
}
