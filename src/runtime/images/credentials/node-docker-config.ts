import { posix } from 'node:path';
import { type Clock, describeError, type Logger } from '../../../lib/index.ts';
import { type DockerConfig, parseDockerCfg, parseDockerConfigJson } from './docker-config.ts';

export interface NodeDockerConfigDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Text of a file, or undefined when it is not there. */
  readonly readFile: (path: string) => Promise<string | undefined>;
  readonly rootDir: string;
  readonly workingDir: string;
  /** Undefined for a user without one. */
  readonly homeDir: string | undefined;
}

interface ConfigPlace {
  readonly path: string;
  readonly parse: (text: string, what: string) => DockerConfig;
}

const lifetimeMs = 5 * 60_000;

/** The logins the machine itself has, good for all its pods. The files are read again when five minutes have passed. */
export class NodeDockerConfig {
  readonly #deps: NodeDockerConfigDeps;
  #known: { readonly config: DockerConfig; readonly untilMs: number } | undefined;

  constructor(deps: NodeDockerConfigDeps) {
    this.#deps = deps;
  }

  async get(): Promise<DockerConfig> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#known !== undefined && nowMs < this.#known.untilMs) return this.#known.config;
    const config = await this.#read();
    this.#known = { config, untilMs: nowMs + lifetimeMs };
    return config;
  }

  /** The first file that can be used, the newer form before the older one. */
  async #read(): Promise<DockerConfig> {
    for (const place of placesOf(this.#deps)) {
      const config = await this.#readOne(place);
      if (config !== undefined) return config;
    }
    return new Map();
  }

  async #readOne({ path, parse }: ConfigPlace): Promise<DockerConfig | undefined> {
    try {
      const text = await this.#deps.readFile(path);
      return text === undefined ? undefined : parse(text, path);
    } catch (error) {
      this.#deps.logger.warn('Left out a docker config of the node', { path, because: describeError(error) });
      return undefined;
    }
  }
}

function placesOf({ rootDir, workingDir, homeDir }: NodeDockerConfigDeps): readonly ConfigPlace[] {
  const home = homeDir === undefined ? [] : [homeDir];
  const newer = [rootDir, workingDir, ...home.map((dir) => posix.join(dir, '.docker')), '/.docker'];
  const older = [rootDir, workingDir, ...home, '/'];
  return [
    ...newer.map((dir) => ({ path: posix.join(dir, 'config.json'), parse: parseDockerConfigJson })),
    ...older.map((dir) => ({ path: posix.join(dir, '.dockercfg'), parse: parseDockerCfg })),
  ];
}
