import type { TextPosition, YamlProblem } from './yaml-tree.ts';
import type { YieldingCounter } from './yielding-counter.ts';

/**
 * Parsing YAML takes up to a thousand times the memory of the text. So the text is measured first
 * by its lexemes alone, which needs no memory and ends at the first exceeded limit.
 */

/**
 * The maximum number of lexemes. A large pod has a thousand, so a text can contain the pods of a
 * full node.
 */
export const maxLexemes = 100_000;
/** The cost of an empty document, in lexemes. */
const partsOfDocument = 10;
/**
 * The cost of a bracket or brace, in lexemes: the parser keeps several objects for each collection,
 * and an error for each bracket that closes nothing.
 */
const partsOfBracket = { start: 3, end: 2 };
export const maxLines = 50_000;
/**
 * The maximum length of all quoted text, because the parser needs forty bytes for each of its
 * characters.
 */
export const maxQuotedCharacters: number = 1024 * 1024;
/**
 * The maximum length of a document, because the lexer reads a plain scalar in one piece; no API
 * object is longer.
 */
export const maxDocumentCharacters: number = 3 * 1024 * 1024;
export const maxDepth = 100;

type YamlLibrary = Pick<typeof import('yaml'), 'Lexer' | 'CST'>;

/** Measures the text and returns the first exceeded limit, or undefined. */
export async function findExceededLimit(
  { Lexer, CST }: YamlLibrary,
  text: string,
  slices: YieldingCounter,
): Promise<YamlProblem | undefined> {
  const tooLong = findLongDocument(text);
  if (tooLong !== undefined) return tooLong;
  const meter = new LimitMeter();
  let ahead: 'scalar' | 'anything' = 'anything';
  for (const lexeme of new Lexer().lex(text)) {
    const type: string | null = ahead === 'scalar' ? 'text' : CST.tokenType(lexeme);
    // This lexeme only announces the type of the next one; it has no characters of the text.
    ahead = type === 'scalar' ? 'scalar' : 'anything';
    const excess = type === 'scalar' ? undefined : meter.add(type, lexeme);
    if (excess !== undefined) return excess;
    if (slices.count()) await slices.yield();
  }
  return undefined;
}

const documentMark = '\n---';

function findLongDocument(text: string): YamlProblem | undefined {
  let line = 1;
  for (let start = 0, end = 0; end < text.length; start = end + 1) {
    const mark = text.indexOf(documentMark, start);
    end = mark === -1 ? text.length : mark;
    if (end - start > maxDocumentCharacters)
      return {
        message: `must have at most ${maxDocumentCharacters} characters in one document: it has more`,
        line,
        column: 1,
      };
    if (text.length > maxDocumentCharacters) line += linesIn(text, start, end + 1);
  }
  return undefined;
}

/**
 * Whether the text has so few lines that tabs can be replaced in each of them before the text is
 * measured.
 */
export function hasFewLines(text: string): boolean {
  return linesIn(text, 0, text.length) <= maxLines;
}

function linesIn(text: string, from: number, to: number): number {
  let count = 0;
  for (let at = text.indexOf('\n', from); at !== -1 && at < to; at = text.indexOf('\n', at + 1))
    if (++count > maxLines) break;
  return count;
}

class LimitMeter {
  #parts = 0;
  #quoted = 0;
  #offset = 0;
  #line = 1;
  #lineStart = 0;
  #lineIsEmpty = true;
  /** The number of open flow collections (brackets and braces). */
  #brackets = 0;
  /** The column of a possible key, in the current line after the last indicator. */
  #keyColumn: number | undefined;
  /** The columns of the open block collections. */
  readonly #indents: number[] = [];

  add(type: string | null, lexeme: string): YamlProblem | undefined {
    const at = { line: this.#line, column: this.#offset - this.#lineStart + 1 };
    this.#parts += partsOf(type);
    if (isQuoted(type)) this.#quoted += lexeme.length;
    this.#nest(type, at.column);
    if (type !== 'doc-mode' && type !== 'flow-error-end') this.#move(type, lexeme);
    return this.#check(at);
  }

  #check(at: TextPosition): YamlProblem | undefined {
    if (this.#line > maxLines)
      return { message: `must have at most ${maxLines} lines: it has more`, line: maxLines + 1, column: 1 };
    const depth = this.#brackets + this.#indents.length;
    if (depth > maxDepth)
      return { message: `must be nested at most ${maxDepth} levels deep: this is deeper`, ...at };
    if (this.#quoted > maxQuotedCharacters)
      return {
        message: `must have at most ${maxQuotedCharacters} characters in quotes: here it gets more`,
        ...at,
      };
    if (this.#parts > maxLexemes)
      return { message: `must have at most ${maxLexemes} words and marks: here it gets more`, ...at };
    return undefined;
  }

  /**
   * Tracks the nesting depth. The result is never too small, but may be one level too large, for
   * example for a value on the same line as its key.
   */
  #nest(type: string | null, column: number): void {
    if (type === 'flow-map-start' || type === 'flow-seq-start') this.#brackets++;
    else if (type === 'flow-map-end' || type === 'flow-seq-end')
      this.#brackets = Math.max(0, this.#brackets - 1);
    else if (type === 'flow-error-end') this.#brackets = 0;
    if (this.#brackets > 0) return;
    // The content of a key may begin left of its `:` or `?`, but never left of the key.
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

function partsOf(type: string | null): number {
  switch (type) {
    case 'doc-start':
      return partsOfDocument;
    case 'flow-map-start':
    case 'flow-seq-start':
      return partsOfBracket.start;
    case 'flow-map-end':
    case 'flow-seq-end':
      return partsOfBracket.end;
    default:
      return 1;
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
