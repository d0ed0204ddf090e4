const zero = 48;
/** Longer numbers may need rounding, which Number does correctly. */
const plainDigits = 15;

/** Finds the number after a name at the start of a line, without splitting all lines. */
export function field(name: string): (text: string) => number | undefined {
  const [first, later] = [`${name} `, `\n${name} `];
  return (text) => {
    if (text.startsWith(first)) return numberAt(text, first.length);
    const at = text.indexOf(later);
    return at < 0 ? undefined : numberAt(text, at + later.length);
  };
}

/** Parses a number; undefined for words such as max. */
export function numberIn(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const end = text.endsWith('\n') ? text.length - 1 : text.length;
  return digitsEnd(text, 0) === end ? numberAt(text, 0) : undefined;
}

/** Parses the number at the position; undefined if there is none. */
export function numberAt(text: string, start: number): number | undefined {
  const end = digitsEnd(text, start);
  if (end === start) return undefined;
  if (end - start > plainDigits) return Number(text.slice(start, end));
  let value = 0;
  for (let at = start; at < end; at++) value = value * 10 + text.charCodeAt(at) - zero;
  return value;
}

/** Returns the end of the digits at the position. */
export function digitsEnd(text: string, start: number): number {
  let at = start;
  for (let digit = text.charCodeAt(at) - zero; digit >= 0 && digit <= 9; digit = text.charCodeAt(at) - zero)
    at++;
  return at;
}

/** Parses lines of a name and a number. */
export function fieldsOf(text = ''): ReadonlyMap<string, number> {
  const rows = [...text.matchAll(/^([\w().]+):?\s+(\d+)/gm)];
  return new Map(rows.map(([, name = '', value]) => [name, Number(value)]));
}
