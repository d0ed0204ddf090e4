import { KubelingError } from '../../lib/index.ts';

const blankOrComment = /[ \t]*(?:#[^\n]*)?(?:\n|$)/y;
const nameAndEquals = /[ \t]*([^=\s](?:[^=\n]*[^=\s])?)=/y;
const emptyValue = /[ \t][^\n]*(?:\n|$)/y;
const quotedValue = /'([^']*)'[ \t]*(?:#[^\n]*)?(?:\n|$)/y;

/**
 * The value of one name in a file of lines such as `NAME='value'`; undefined when it is not there. Quotes are needed,
 * what is between them is taken as it is and may span lines. Throws CONTAINER_CONFIG at the first line before it that
 * is none of this: half a file is worse than none.
 */
export function readEnvFile(text: string, name: string): string | undefined {
  const lines = text.replaceAll('\r\n', '\n');
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | undefined => {
    pattern.lastIndex = at;
    const found = pattern.exec(lines) ?? undefined;
    if (found !== undefined) at = pattern.lastIndex;
    return found;
  };
  while (at < lines.length) {
    if (take(blankOrComment) !== undefined) continue;
    const found = take(nameAndEquals)?.[1];
    // A blank after the equals sign ends the value before it began, as in a shell.
    const value = take(emptyValue) === undefined ? take(quotedValue)?.[1] : '';
    if (found === undefined || value === undefined) {
      throw new KubelingError('CONTAINER_CONFIG', "couldn't parse env file");
    }
    if (found === name) return value;
  }
  return undefined;
}
