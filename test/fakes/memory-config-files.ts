import { posix } from 'node:path';
import type { ConfigFiles } from '../../src/config/index.ts';

/**
 * Configuration files in memory, from their texts by absolute path, for nodes in tests and
 * simulations.
 */
export function memoryConfigFiles(texts: Readonly<Record<string, string>>): ConfigFiles {
  const missing = (path: string) => new Error(`no such file or directory: ${path}`);
  return {
    async readFile(path) {
      const text = Object.hasOwn(texts, path) ? texts[path] : undefined;
      if (text === undefined) throw missing(path);
      return text;
    },
    async readDirectory(path) {
      const inside = Object.keys(texts).filter((file) => file.startsWith(posix.join(path, '/')));
      if (inside.length === 0) throw missing(path);
      const parts = inside.map((file) => posix.relative(path, file).split('/'));
      const names = new Map(
        parts.map(([name = '', ...rest]) => [name, rest.length > 0 ? 'directory' : 'other'] as const),
      );
      return [...names].map(([name, kind]) => ({ name, kind }));
    },
  };
}
