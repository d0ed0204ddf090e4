import type { Place, YamlProblem } from './yaml-tree.ts';
import type { Slices } from './yielding-counter.ts';

/**
 * Parsing YAML takes a thousand times the memory of the text. So what a text would cost is measured first, on its words
 * and marks alone: that keeps nothing and ends at the first excess.
 */

/** A large pod takes a thousand words and marks, so there is room for a full node in one text. */
export const mostParts = 100_000;
/** What even an empty document costs. */
const partsOfDocument = 10;
export const mostLines = 50_000;
/** The parser goes through quoted text letter by letter, at forty bytes each. */
export const mostQuoted: number = 1024 * 1024;
/** The lexer reads a text without marks in one piece; no object of an API is longer. */
export const longestDocument: number = 3 * 1024 * 1024;
export const deepest = 100;

type YamlLibrary = Pick<typeof import('yaml'), 'Lexer' | 'CST'>;

/** The first thing in the text that is too much for the parser. */
export async function findExcess(
  { Lexer, CST }: YamlLibrary,
  text: string,
  slices: Slices,
): Promise<YamlProblem | undefined> {
  const tooLong = findLongDocument(text);
  if (tooLong !== undefined) return tooLong;
  const meter = new Meter();
  let ahead: 'scalar' | 'anything' = 'anything';
  for (const lexeme of new Lexer().lex(text)) {
    const type: string | null = ahead === 'scalar' ? 'text' : CST.tokenType(lexeme);
    // This one only announces what the next one is; it is no part of the text.
    ahead = type === 'scalar' ? 'scalar' : 'anything';
    const excess = type === 'scalar' ? undefined : meter.take(type, lexeme);
    if (excess !== undefined) return excess;
    if (slices.count()) await slices.pause();
  }
  return undefined;
}

const documentMark = '\n---';

function findLongDocument(text: string): YamlProblem | undefined {
  let line = 1;
  for (let start = 0, end = 0; end < text.length; start = end + 1) {
    const mark = text.indexOf(documentMark, start);
    end = mark === -1 ? text.length : mark;
    if (end - start > longestDocument)
      return {
        message: `must have at most ${longestDocument} characters in one document: it has more`,
        line,
        column: 1,
      };
    if (text.length > longestDocument) line += linesIn(text, start, end + 1);
  }
  return undefined;
}

/** Whether the text may be gone through line by line before it is measured. */
export function hasFewLines(text: string): boolean {
  return linesIn(text, 0, text.length) <= mostLines;
}

function linesIn(text: string, from: number, to: number): number {
  let count = 0;
  for (let at = text.indexOf('\n', from); at !== -1 && at < to; at = text.indexOf('\n', at + 1))
    if (++count > mostLines) break;
  return count;
}

class Meter {
  #parts = 0;
  #quoted = 0;
  #offset = 0;
  #line = 1;
  #lineStart = 0;
  #lineIsEmpty = true;
  /** How many brackets are open. */
  #brackets = 0;
  /** Where that begins which may turn out to be a key, in this line and after the last mark. */
  #keyColumn: number | undefined;
  /** The columns at which something began that is not over yet. */
  readonly #indents: number[] = [];

  take(type: string | null, lexeme: string): YamlProblem | undefined {
    const at = { line: this.#line, column: this.#offset - this.#lineStart + 1 };
    this.#parts += type === 'doc-start' ? partsOfDocument : 1;
    if (isQuoted(type)) this.#quoted += lexeme.length;
    this.#nest(type, at.column);
    if (type !== 'doc-mode' && type !== 'flow-error-end') this.#move(type, lexeme);
    return this.#judge(at);
  }

  #judge(at: Place): YamlProblem | undefined {
    if (this.#line > mostLines)
      return { message: `must have at most ${mostLines} lines: it has more`, line: mostLines + 1, column: 1 };
    const depth = this.#brackets + this.#indents.length;
    if (depth > deepest)
      return { message: `must be nested at most ${deepest} levels deep: this is deeper`, ...at };
    if (this.#quoted > mostQuoted)
      return { message: `must have at most ${mostQuoted} characters in quotes: here it gets more`, ...at };
    if (this.#parts > mostParts)
      return { message: `must have at most ${mostParts} words and marks: here it gets more`, ...at };
    return undefined;
  }

  /** Counts a level too many rather than one too few; that of a value beside its key is such a one. */
  #nest(type: string | null, column: number): void {
    if (type === 'flow-map-start' || type === 'flow-seq-start') this.#brackets++;
    else if (type === 'flow-map-end' || type === 'flow-seq-end')
      this.#brackets = Math.max(0, this.#brackets - 1);
    else if (type === 'flow-error-end') this.#brackets = 0;
    if (this.#brackets > 0) return;
    // What a key holds may stand left of the mark behind it, but never left of the key.
    if (type === 'map-value-ind' && this.#keyColumn !== undefined) this.#indent(this.#keyColumn);
    if (this.#begins(type)) this.#indent(column);
    if (type === 'newline' || isMark(type)) this.#keyColumn = undefined;
    else if (!isBlank(type)) this.#keyColumn ??= column;
  }

  #indent(column: number): void {
    while ((this.#indents.at(-1) ?? 0) >= column) this.#indents.pop();
    this.#indents.push(column);
  }

  #begins(type: string | null): boolean {
    return isMark(type) || (this.#lineIsEmpty && !isBlank(type));
  }

  #move(type: string | null, lexeme: string): void {
    if (!isBlank(type)) this.#lineIsEmpty = false;
    for (let end = lexeme.indexOf('\n'); end !== -1; end = lexeme.indexOf('\n', end + 1)) {
      this.#line++;
      this.#lineStart = this.#offset + end + 1;
      this.#lineIsEmpty = end === lexeme.length - 1;
    }
    this.#offset += lexeme.length;
  }
}

function isMark(type: string | null): boolean {
  return type === 'seq-item-ind' || type === 'explicit-key-ind' || type === 'map-value-ind';
}

function isQuoted(type: string | null): boolean {
  return type === 'single-quoted-scalar' || type === 'double-quoted-scalar';
}

function isBlank(type: string | null): boolean {
  return type === 'space' || type === 'newline' || type === 'comment' || type === 'doc-mode';
}
