import type { JsonObject } from '../../api/index.ts';
import { isPlainYamlText } from '../../lib/index.ts';
import type { ApiAnswer } from '../api/responses.ts';
import type { OutputForm } from './negotiation.ts';
import { type Shaping, shapedAnswer } from './negotiation.ts';
import type { Reply } from './reply.ts';

type ListAnswer = Extract<ApiAnswer, { kind: 'list' }>;

/** Up to so many objects are answered in one piece: all others wait while it is made. */
const mostInOnePiece = 20;
const mostItemsOfPiece = 100;
/** Objects may have megabytes: after a piece that is longer, the next one has fewer of them. */
const pieceCharacters = 512 * 1024;

export function isLongList(answer: ApiAnswer): answer is ListAnswer {
  return answer.kind === 'list' && answer.list.items.length > mostInOnePiece;
}

/**
 * The JSON of a long list, to be made while it is sent, so that others have their turn in between and it is never in
 * memory as a whole. Objects are frozen: what happens meanwhile does not show. What cannot be shown at all is refused
 * before the first piece.
 */
export function listPieces(
  answer: ListAnswer,
  shaping: Shaping,
  layout: OutputForm['layout'] = 'compact',
): Iterable<string> {
  const pieces = makePieces(answer, shaping, layout);
  const first = pieces.next();
  return first.done === true ? [] : begun(first.value, pieces);
}

function* begun(first: string, rest: Iterable<string>): Generator<string, void> {
  yield first;
  yield* rest;
}

function* makePieces(
  { list, ...answer }: ListAnswer,
  shaping: Shaping,
  layout: OutputForm['layout'],
): Generator<string, void> {
  const nowMs = shaping.nowMs();
  const field = shaping.shape === 'table' ? 'rows' : 'items';
  let count = mostInOnePiece;
  for (let at = 0; at < list.items.length; ) {
    const items = list.items.slice(at, at + count);
    const part = shapedAnswer({ ...answer, list: { ...list, items } }, { ...shaping, nowMs: () => nowMs });
    const { [field]: entries, ...head } = part;
    const text = layout === 'indented' ? indentedItems(entries) : JSON.stringify(entries).slice(1, -1);
    yield at === 0 ? `${headOf(head, layout)}${text}` : `,${text}`;
    at += items.length;
    count = text.length > pieceCharacters ? Math.max(1, count >> 1) : Math.min(mostItemsOfPiece, count * 2);
  }
  yield layout === 'indented' ? '\n  ]\n}\n' : ']}\n';

  function headOf(head: JsonObject, form: OutputForm['layout']): string {
    const text =
      form === 'indented' ? JSON.stringify(head, null, 2).slice(0, -2) : JSON.stringify(head).slice(0, -1);
    return form === 'indented' ? `${text},\n  "${field}": [` : `${text},"${field}":[`;
  }
}

/** The items as they stand two levels deep. */
function indentedItems(entries: unknown): string {
  return JSON.stringify(entries, null, 2).slice(1, -2).replaceAll('\n', '\n  ');
}

/** Pieces of an answer are about this long: one is written while the client takes the one before. */
const yamlPieceCharacters = 64 * 1024;

/** An object in YAML, to be written while it is sent: of a long list that takes seconds. */
export function yamlReply(status: number, value: unknown): Reply {
  return { status, headers: { 'Content-Type': 'application/yaml' }, body: yamlPieces(value) };
}

/** Of a value as JSON has it: what JSON would leave out is left out. */
export function* yamlPieces(value: unknown): Generator<string, void> {
  let piece = '';
  for (const line of linesOf(value, '', '')) {
    piece += line;
    if (piece.length < yamlPieceCharacters) continue;
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
