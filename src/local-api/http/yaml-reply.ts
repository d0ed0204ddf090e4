import { isPlainYamlText } from '../../lib/index.ts';
import type { Reply } from './reply.ts';

/** Pieces of an answer are about this long: one is written while the client takes the one before. */
const pieceCharacters = 64 * 1024;

/** An object in YAML, to be written while it is sent: of a long list that takes seconds. */
export function yamlReply(status: number, value: unknown): Reply {
  return { status, headers: { 'Content-Type': 'application/yaml' }, body: yamlPieces(value) };
}

/** Of a value as JSON has it: what JSON would leave out is left out. */
export function* yamlPieces(value: unknown): Generator<string, void> {
  let piece = '';
  for (const line of linesOf(value, '', '')) {
    piece += line;
    if (piece.length < pieceCharacters) continue;
    yield piece;
    piece = '';
  }
  yield piece;
}

/** `first` is what stands in front of the value on its own line, `indent` what lines below it begin with. */
function* linesOf(value: unknown, first: string, indent: string): Generator<string, void> {
  if (Array.isArray(value)) yield* itemsOf(value, first, indent);
  else if (typeof value === 'object' && value !== null) yield* fieldsOf(value, first, indent);
  else yield `${first}${scalar(value)}\n`;
}

function* itemsOf(items: readonly unknown[], first: string, indent: string): Generator<string, void> {
  if (items.length === 0) yield `${first}[]\n`;
  for (const [index, item] of items.entries())
    yield* linesOf(item ?? null, `${index === 0 ? first : indent}- `, `${indent}  `);
}

function* fieldsOf(fields: object, first: string, indent: string): Generator<string, void> {
  let start = first;
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    const key = `${start}${scalar(name)}:`;
    const isNested = typeof value === 'object' && value !== null && Object.keys(value).length > 0;
    if (isNested) yield `${key}\n`;
    yield* isNested ? linesOf(value, `${indent}  `, `${indent}  `) : linesOf(value, `${key} `, indent);
    start = indent;
  }
  if (start === first && Object.values(fields).every((value) => value === undefined)) yield `${first}{}\n`;
}

/** What some reader could take for a number. */
const numberLike = /^[eE\d_.-]+$/;

/** As every reader understands it: what is not plainly a word is in the quotes of JSON, which YAML has too. */
function scalar(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value) ?? 'null';
  const isWord =
    /^[A-Za-z_/][\w./-]{0,200}$/.test(value) && !numberLike.test(value) && isPlainYamlText(value);
  return isWord ? value : JSON.stringify(value);
}
