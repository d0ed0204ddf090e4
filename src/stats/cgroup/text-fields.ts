const zero = 48;
/** With more of them a number may have to be rounded, which is best left to those who can. */
const plainDigits = 15;

/** Finds the number after a name at the beginning of a line: cheaper than to read all lines for a few. */
export function field(name: string): (text: string) => number | undefined {
  const [first, later] = [`${name} `, `\n${name} `];
  return (text) => {
    if (text.startsWith(first)) return numberAt(text, first.length);
    const at = text.indexOf(later);
    return at < 0 ? undefined : numberAt(text, at + later.length);
  };
}

/** The number a text is; undefined for words, such as the one for no limit. */
export function numberIn(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const end = text.endsWith('\n') ? text.length - 1 : text.length;
  return digitsEnd(text, 0) === end ? numberAt(text, 0) : undefined;
}

/** The number that begins there; undefined where none does. */
export function numberAt(text: string, start: number): number | undefined {
  const end = digitsEnd(text, start);
  if (end === start) return undefined;
  if (end - start > plainDigits) return Number(text.slice(start, end));
  let value = 0;
  for (let at = start; at < end; at++) value = value * 10 + text.charCodeAt(at) - zero;
  return value;
}

/** Where the digits end that begin there. */
export function digitsEnd(text: string, start: number): number {
  let at = start;
  for (let digit = text.charCodeAt(at) - zero; digit >= 0 && digit <= 9; digit = text.charCodeAt(at) - zero)
    at++;
  return at;
}

/** Lines of a name and a number. */
export function fieldsOf(text = ''): ReadonlyMap<string, number> {
  const rows = [...text.matchAll(/^([\w().]+):?\s+(\d+)/gm)];
  return new Map(rows.map(([, name = '', value]) => [name, Number(value)]));
}
