import type { JsonObject } from '../../api/index.ts';
import type { ApiAnswer } from '../core/answers.ts';
import type { OutputForm } from './negotiate.ts';
import { type Shaping, shapedAnswer } from './shape.ts';

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
