import { type LoadedConfig, toWire } from '../../config/index.ts';
import type { Logger } from '../../lib/index.ts';

export interface ConfigReloadDeps {
  /** Reads the configuration anew, the same way as at the start. Rejects for one that is wrong. */
  readonly load: (signal: AbortSignal) => Promise<Pick<LoadedConfig, 'config'>>;
  readonly logger: Logger;
}

type Config = LoadedConfig['config'];

/** Where those who can change what they do while the kubelet runs say so. */
export interface LiveConfig {
  /** From now on a change of any of these fields, named as in `logging.verbosity`, is taken over by the taker. */
  onChange(fields: readonly string[], take: (config: Config) => void): void;
}

/** Takes over what has changed in the configuration and can be taken over, and tells of the rest. */
export class ConfigReload implements LiveConfig {
  readonly #deps: ConfigReloadDeps;
  readonly #listeners = new Map<string, (config: Config) => void>();
  /** As a file has it, with what was taken over since. */
  #current: Plain;
  #turn: Promise<void> = Promise.resolve();

  constructor(inEffect: Config, deps: ConfigReloadDeps) {
    this.#current = toWire(inEffect);
    this.#deps = deps;
  }

  onChange(fields: readonly string[], take: (config: Config) => void): void {
    for (const field of fields) this.#listeners.set(field, take);
  }

  /** One after the other. Never rejects: a configuration that is wrong changes nothing. */
  reload(signal: AbortSignal): Promise<void> {
    this.#turn = this.#turn.then(() => this.#reload(signal));
    return this.#turn;
  }

  async #reload(signal: AbortSignal): Promise<void> {
    const { load, logger } = this.#deps;
    try {
      const { config } = await load(signal);
      const wanted: Plain = toWire(config);
      const changed = changedFields(this.#current, wanted);
      const taken = changed.filter((field) => this.#listeners.has(field));
      // Whoever takes several of them takes all at once.
      for (const take of new Set(taken.map((field) => this.#listeners.get(field)))) take?.(config);
      const waiting = changed.filter((field) => !taken.includes(field));
      logger.info('The configuration was read again', { taken, needRestart: waiting });
      // What needs a restart is told again each time, until there was one.
      for (const field of taken) this.#current = withField(this.#current, wanted, field.split('.'));
    } catch (error) {
      if (!signal.aborted) logger.error('The configuration stays as it was', error);
    }
  }
}

type Plain = Readonly<Record<string, unknown>>;

/** The one with a field of the other. */
function withField(one: Plain, other: Plain, [name = '', ...rest]: readonly string[]): Plain {
  const [inner, value] = [one[name], other[name]];
  if (rest.length === 0 || !isPlain(inner) || !isPlain(value)) return { ...one, [name]: value };
  return { ...one, [name]: withField(inner, value, rest) };
}

/** The paths of all values that are not the same, sorted. */
export function changedFields(before: unknown, after: unknown, path = ''): readonly string[] {
  if (!isPlain(before) || !isPlain(after))
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [path];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return names.flatMap((name) =>
    changedFields(before[name], after[name], path === '' ? name : `${path}.${name}`),
  );
}

function isPlain(value: unknown): value is Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
