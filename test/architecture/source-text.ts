/**
 * Scans TypeScript just far enough to find its imports and words without confusing them with
 * comments and strings.
 */

export interface Import {
  /** The module specifier, without its quotes. */
  readonly from: string;
  /**
   * Whether the import is erased at run time. An import with a list of inline `type` names is not
   * erased: the file is still loaded.
   */
  readonly typeOnly: boolean;
}

/**
 * The program with comments blanked and the content of strings replaced by `_`; every character
 * keeps its position.
 */
export function codeOnly(source: string): string {
  return scan(source).code;
}

/** Every regular expression literal, with its position. */
export function patternsOf(source: string): readonly Pattern[] {
  return scan(source).patterns;
}

export interface Pattern {
  readonly at: number;
  readonly source: string;
  readonly flags: string;
}

function scan(source: string): { readonly code: string; readonly patterns: readonly Pattern[] } {
  const patterns: Pattern[] = [];
  const out = source.split('');
  const blank = (from: number, to: number, by: string) => {
    for (let at = from; at < to; at++) if (source[at] !== '\n') out[at] = by;
  };
  /** The number of open braces inside each enclosing template expression. */
  const holes: number[] = [];
  let at = 0;
  while (at < source.length) {
    const rest = source.slice(at, at + 2);
    if (rest === '//' || rest === '/*') {
      const end = endOfComment(source, at);
      blank(at, end, ' ');
      at = end;
    } else if (source[at] === "'" || source[at] === '"') {
      const end = endOfQuoted(source, at);
      blank(at + 1, end - 1, '_');
      at = end;
    } else if (source[at] === '/' && startsPattern(out, at)) {
      const end = endOfPattern(source, at);
      const flags = /^[a-z]*/.exec(source.slice(end, end + 10))?.[0] ?? '';
      patterns.push({ at, source: source.slice(at + 1, end - 1), flags });
      blank(at, end, '_');
      at = end;
    } else if (source[at] === '`' || (source[at] === '}' && holes.at(-1) === 0)) {
      if (source[at] === '}') holes.pop();
      const end = endOfTemplatePart(source, at);
      blank(at, end, '_');
      if (source[end - 1] === '{') holes.push(0);
      at = end;
    } else {
      const open = holes.length - 1;
      if (open >= 0 && source[at] === '{') holes[open] = (holes[open] ?? 0) + 1;
      if (open >= 0 && source[at] === '}') holes[open] = (holes[open] ?? 0) - 1;
      at++;
    }
  }
  return { code: out.join(''), patterns };
}

function endOfComment(source: string, at: number): number {
  const [mark, length] = source[at + 1] === '/' ? ['\n', 0] : ['*/', 2];
  const end = source.indexOf(mark, at + 2);
  return end < 0 ? source.length : end + length;
}

function endOfQuoted(source: string, at: number): number {
  let end = at + 1;
  while (end < source.length && source[end] !== source[at] && source[end] !== '\n')
    end += source[end] === '\\' ? 2 : 1;
  return end + 1;
}

/**
 * Skips from a backtick or the end of a template expression to just after the closing backtick or
 * the brace of the next expression.
 */
function endOfTemplatePart(source: string, at: number): number {
  let end = at + 1;
  while (end < source.length && source[end] !== '`') {
    if (source.startsWith('${', end)) return end + 2;
    end += source[end] === '\\' ? 2 : 1;
  }
  return end + 1;
}

/** A slash after a value is a division; anywhere else it starts a regular expression. */
function startsPattern(out: readonly string[], at: number): boolean {
  const before = out
    .slice(Math.max(0, at - 40), at)
    .join('')
    .trimEnd();
  if (/\b(?:return|typeof|case|in|of|do|else|void|await|yield)$/.test(before)) return true;
  return !/[\w$)\]}'"`]$/.test(before);
}

function endOfPattern(source: string, at: number): number {
  let inClass = false;
  let end = at + 1;
  for (; end < source.length && source[end] !== '\n'; end++) {
    if (source[end] === '\\') end++;
    else if (source[end] === '[') inClass = true;
    else if (source[end] === ']') inClass = false;
    else if (source[end] === '/' && !inClass) break;
  }
  return end + 1;
}

const importForms = [
  /\b(?:import|export)\s+(?<type>type\s+(?!from\b))?[\w\s$*,{}]*?\bfrom\s*(?<quote>['"])/g,
  /\bimport\s*(?<quote>['"])/g,
  /\bimport\s*\(\s*(?<quote>['"])/g,
];

export function importsOf(source: string): Import[] {
  const code = codeOnly(source);
  return importForms.flatMap((form) =>
    [...code.matchAll(form)].map((match) => {
      const start = match.index + match[0].length;
      const end = code.indexOf(match.groups?.['quote'] ?? '', start);
      return { from: source.slice(start, end), typeOnly: match.groups?.['type'] !== undefined };
    }),
  );
}
