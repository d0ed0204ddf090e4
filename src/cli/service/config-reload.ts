import { type LoadedConfig, toWire } from '../../config/index.ts';
import type { Logger } from '../../lib/index.ts';

export interface ConfigReloadDeps {
  /** Loads the configuration as at the start. Rejects when it is invalid. */
  readonly load: (signal: AbortSignal) => Promise<Pick<LoadedConfig, 'config'>>;
  readonly logger: Logger;
}

type Config = LoadedConfig['config'];

/** Where components register for changes of the configuration at run time. */
export interface LiveConfig {
  /**
   * Registers a listener for changes of these fields, given as paths such as `logging.verbosity`.
   */
  onChange(fields: readonly string[], apply: (config: Config) => void): void;
}

/**
 * Reloads the configuration, applies changed fields that can change at run time, and reports the
 * others.
 */
export class ConfigReload implements LiveConfig {
  readonly #deps: ConfigReloadDeps;
  readonly #listeners = new Map<string, (config: Config) => void>();
  /** The configuration at start, with the field changes applied so far. */
  #current: Plain;
  #turn: Promise<void> = Promise.resolve();

  constructor(inEffect: Config, deps: ConfigReloadDeps) {
    this.#current = toWire(inEffect);
    this.#deps = deps;
  }

  onChange(fields: readonly string[], apply: (config: Config) => void): void {
    for (const field of fields) this.#listeners.set(field, apply);
  }

  /**
   * Reloads the configuration; concurrent calls are serialized. Never rejects: an invalid
   * configuration changes nothing.
   */
  reload(signal: AbortSignal): Promise<void> {
    this.#turn = this.#turn.then(() => this.#reload(signal));
    return this.#turn;
  }

  async #reload(signal: AbortSignal): Promise<void> {
    const { load, logger } = this.#deps;
    try {
      const { config } = await load(signal);
      const desired: Plain = toWire(config);
      const changed = changedFields(this.#current, desired);
      const applied = changed.filter((field) => this.#listeners.has(field));
      // A listener for several fields is called once for all of them.
      for (const apply of new Set(applied.map((field) => this.#listeners.get(field)))) apply?.(config);
      const waiting = changed.filter((field) => !applied.includes(field));
      logger.info('Reloaded configuration', { taken: applied, needRestart: waiting });
      // Only applied fields become current, so fields that need a restart are reported at each
      // reload until the restart.
      for (const field of applied) this.#current = withField(this.#current, desired, field.split('.'));
    } catch (error) {
      if (!signal.aborted) logger.error('Failed to reload configuration, keeping the current one', error);
    }
  }
}

type Plain = Readonly<Record<string, unknown>>;

/**
 * Returns a copy of the first configuration in which one field has the value of the other
 * configuration.
 */
function withField(before: Plain, other: Plain, [name = '', ...rest]: readonly string[]): Plain {
  const [inner, value] = [before[name], other[name]];
  if (rest.length === 0 || !isPlain(inner) || !isPlain(value)) return { ...before, [name]: value };
  return { ...before, [name]: withField(inner, value, rest) };
}

/** Returns the sorted paths of all values that differ. */
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
