import { KubelingError } from '../errors.ts';
import type { Caller } from './format.ts';

/** One `pattern=level` entry of a vmodule setting. */
export interface ModuleLevel {
  readonly pattern: string;
  readonly level: number;
}

/**
 * Parses `pattern=level,...`. A pattern is the name of a source file without its extension, with
 * `*`, `?` and `[abc]` as in a shell; a pattern with slashes is compared with the same number of
 * path components at the end of the path.
 */
export function parseModuleLevels(text: string): ModuleLevel[] {
  const parts = text.split(',').map((part) => part.trim());
  const parsed = parts
    .filter((part) => part !== '')
    .map((part) => ({ part, found: /^([^=]+)=(\d{1,9})$/.exec(part) }));
  const wrong = parsed.filter(({ found }) => found === null).map(({ part }) => JSON.stringify(part));
  if (wrong.length > 0) {
    throw new KubelingError(
      'LOG_LEVEL_INVALID',
      `Cannot set log levels by file as each must be pattern=N: current value has ${wrong.join(', ')}`,
    );
  }
  return parsed.map(({ found }) => ({ pattern: found?.[1] ?? '', level: Number(found?.[2]) }));
}

/** Checks a log level that was set by a flag or at run time. */
function checkedLevel(level: number): number {
  if (Number.isSafeInteger(level) && level >= 0) return level;
  throw new KubelingError(
    'LOG_LEVEL_INVALID',
    `Cannot set the log level as it must be a whole number from 0: current value is ${level}`,
  );
}

interface Matcher extends ModuleLevel {
  readonly parts: number;
  readonly matches: RegExp;
}

/**
 * Determines which lines are logged. Shared by a logger and its children; may be changed at run
 * time.
 */
export class Verbosity {
  #level: number;
  #modules: readonly Matcher[] = [];
  #highestModule = 0;
  /** The level per source file; the cache is bounded by the number of source files. */
  readonly #levelOfPath = new Map<string, number>();

  constructor(level = 0, modules: readonly ModuleLevel[] = []) {
    this.#level = checkedLevel(level);
    this.setModules(modules);
  }

  get level(): number {
    return this.#level;
  }

  setLevel(level: number): void {
    this.#level = checkedLevel(level);
  }

  /**
   * The first pattern that matches a file determines its level; it can only raise the global level.
   */
  setModules(modules: readonly ModuleLevel[]): void {
    this.#modules = modules.map(matcherOf);
    this.#highestModule = Math.max(0, ...modules.map(({ level }) => level));
    this.#levelOfPath.clear();
  }

  /** The caller is determined only if file patterns could enable the line. */
  shows(level: number, caller: () => Caller): boolean {
    if (level <= this.#level) return true;
    return level <= this.#highestModule && level <= this.#moduleLevel(caller().path);
  }

  #moduleLevel(path: string): number {
    const known = this.#levelOfPath.get(path);
    if (known !== undefined) return known;
    const level = this.#modules.find((module) => module.matches.test(tail(path, module.parts)))?.level ?? 0;
    this.#levelOfPath.set(path, level);
    return level;
  }
}

function matcherOf(module: ModuleLevel): Matcher {
  const parts = module.pattern.split('/').length;
  return { ...module, parts, matches: new RegExp(`^${globSource(module.pattern)}$`) };
}

function tail(path: string, parts: number): string {
  return path
    .replace(/\.[cm]?[jt]s$/, '')
    .split('/')
    .slice(-parts)
    .join('/');
}

function globSource(pattern: string): string {
  return pattern.replace(/\[[^\]/]+\]|[\s\S]/g, (part) => {
    if (part === '*') return '[^/]*';
    if (part === '?') return '[^/]';
    if (part.length > 1) return `[${part.slice(1, -1).replace(/[\\[]/g, '\\$&')}]`;
    return part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  });
}
