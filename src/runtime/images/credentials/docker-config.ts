import { posix } from 'node:path';
import { type Clock, describeError, KubelingError, type Logger } from '../../../lib/index.ts';

/** The user name and password for a registry. */
export interface RegistryLogin {
  readonly username: string;
  readonly password: string;
  readonly email: string;
}

/** The logins by registry as written in the file: a host, optionally with scheme, port and path. */
export type DockerConfig = ReadonlyMap<string, RegistryLogin>;

/**
 * Parses the docker config format with `auths`. Throws IMAGE_CREDENTIALS without any content of the
 * file.
 */
export function parseDockerConfigJson(text: string, what: string, maxRegistries?: number): DockerConfig {
  return readLogins(recordIn(parse(text, what), what)['auths'], what, maxRegistries);
}

/** Parses the `.dockercfg` format, with registries at the top level. */
export function parseDockerCfg(text: string, what: string, maxRegistries?: number): DockerConfig {
  return readLogins(parse(text, what), what, maxRegistries);
}

function parse(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The error of JSON.parse is dropped: it quotes the text, which is secret.
    throw bad(what, 'it must hold JSON');
  }
}

function readLogins(value: unknown, what: string, maxRegistries = Number.POSITIVE_INFINITY): DockerConfig {
  if (value === undefined || value === null) return new Map();
  const logins = new Map<string, RegistryLogin>();
  const entries = Object.entries(recordIn(value, what));
  if (entries.length > maxRegistries) throw bad(what, `it must have at most ${maxRegistries} registries`);
  for (const [registry, entry] of entries) {
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

/**
 * Reads a login. `auth` is base64 of `user:password`, sometimes without padding, and overrides the
 * plain fields.
 */
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

export interface NodeDockerConfigDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Reads the text of a file; undefined when it is missing. */
  readonly readFile: (path: string) => Promise<string | undefined>;
  readonly rootDir: string;
  /** The current directory; undefined if its docker config files must not be used. */
  readonly workingDir: string | undefined;
  /** The home directory; undefined when the user has none. */
  readonly homeDir: string | undefined;
}

interface ConfigLocation {
  readonly path: string;
  readonly parse: (text: string, what: string) => DockerConfig;
}

const lifetimeMs = 5 * 60_000;

/** The node's registry logins, for all pods. The files are read again after five minutes. */
export class NodeDockerConfig {
  readonly #deps: NodeDockerConfigDeps;
  #cached: { readonly config: DockerConfig; readonly untilMs: number } | undefined;

  constructor(deps: NodeDockerConfigDeps) {
    this.#deps = deps;
  }

  async get(): Promise<DockerConfig> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#cached !== undefined && nowMs < this.#cached.untilMs) return this.#cached.config;
    const config = await this.#read();
    this.#cached = { config, untilMs: nowMs + lifetimeMs };
    return config;
  }

  /** Returns the logins of the first valid file; `config.json` is read before `.dockercfg`. */
  async #read(): Promise<DockerConfig> {
    for (const place of configLocations(this.#deps)) {
      const config = await this.#readOne(place);
      if (config !== undefined) return config;
    }
    return new Map();
  }

  async #readOne({ path, parse }: ConfigLocation): Promise<DockerConfig | undefined> {
    try {
      const text = await this.#deps.readFile(path);
      return text === undefined ? undefined : parse(text, path);
    } catch (error) {
      this.#deps.logger.warn('Ignored invalid docker config of the node', {
        path,
        because: describeError(error),
      });
      return undefined;
    }
  }
}

function configLocations({ rootDir, workingDir, homeDir }: NodeDockerConfigDeps): readonly ConfigLocation[] {
  const home = homeDir === undefined ? [] : [homeDir];
  const current = workingDir === undefined ? [] : [workingDir];
  const newer = [rootDir, ...current, ...home.map((dir) => posix.join(dir, '.docker')), '/.docker'];
  const older = [rootDir, ...current, ...home, '/'];
  return [
    ...newer.map((dir) => ({ path: posix.join(dir, 'config.json'), parse: parseDockerConfigJson })),
    ...older.map((dir) => ({ path: posix.join(dir, '.dockercfg'), parse: parseDockerCfg })),
  ];
}
