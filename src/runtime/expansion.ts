import { KubelingError } from '../lib/index.ts';

/**
 * Puts values in the place of `$(NAME)`. `$$` stands for one dollar sign; a name that is not known and a reference
 * that does not end stay as they are written. Values are not looked at again.
 */
export function expand(text: string, lookup: (name: string) => string | undefined): string {
  const lastCloser = text.lastIndexOf(')');
  let result = '';
  let from = 0;
  for (let at = text.indexOf('$'); at >= 0; at = text.indexOf('$', from)) {
    result += text.slice(from, at);
    const next = text[at + 1];
    // Knowing the last closer keeps a text full of openers from being searched again for each of them.
    if (next === '(' && at + 1 < lastCloser) {
      const closer = text.indexOf(')', at);
      result += lookup(text.slice(at + 2, closer)) ?? text.slice(at, closer + 1);
      from = closer + 1;
    } else {
      result += '$';
      from = next === '$' ? at + 2 : at + 1;
    }
  }
  return result + text.slice(from);
}

/** For paths inside volumes, where a missing or empty value would name another place than meant. */
export function expandStrictly(text: string, lookup: (name: string) => string | undefined): string {
  const missing = new Set<string>();
  const expanded = expand(text, (name) => {
    const value = lookup(name) ?? '';
    if (value === '') missing.add(name);
    return value;
  });
  if (missing.size === 0) return expanded;
  throw new KubelingError('CONTAINER_CONFIG', `missing value for ${[...missing].sort().join(', ')}`);
}
