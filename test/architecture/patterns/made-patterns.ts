import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export interface MadePattern {
  readonly source: string;
  readonly flags: string;
  readonly line: number;
}

/**
 * Returns every `new RegExp` that is executed while a module is loaded. Modules that were loaded
 * earlier are not observed.
 */
export async function patternsMadeBy(root: string, file: string): Promise<readonly MadePattern[]> {
  const created: MadePattern[] = [];
  const original = globalThis.RegExp;
  const watched = new Proxy(original, {
    construct(target, [source, flags], newTarget) {
      const pattern: RegExp = Reflect.construct(target, [source, flags], newTarget);
      const line = lineIn(file);
      if (line !== undefined) created.push({ source: pattern.source, flags: pattern.flags, line });
      return pattern;
    },
  });
  globalThis.RegExp = watched;
  try {
    // A different URL loads the module again even if it was loaded earlier.
    await import(`${pathToFileURL(join(root, file)).href}?patterns`);
  } finally {
    globalThis.RegExp = original;
  }
  return created;
}

/**
 * Returns the line number in the file whose code is currently executing; undefined if the file is
 * not on the call stack.
 */
function lineIn(file: string): number | undefined {
  const caller = (new Error().stack ?? '').split('\n').find((each) => each.includes(`${file}?patterns:`));
  const line = caller?.split(`${file}?patterns:`)[1]?.split(':')[0];
  return line === undefined ? undefined : Number(line);
}
