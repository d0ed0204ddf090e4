import type { ApiAnswer } from '../core/answers.ts';
import { type Shaping, shapedAnswer } from './shape.ts';

type ListAnswer = Extract<ApiAnswer, { kind: 'list' }>;

/** Up to so many objects are answered in one piece: all others wait while it is made. */
const mostInOnePiece = 200;
const itemsOfPiece = 100;

export function isLongList(answer: ApiAnswer): answer is ListAnswer {
  return answer.kind === 'list' && answer.list.items.length > mostInOnePiece;
}

/**
 * The JSON of a long list, to be made while it is sent, so that others have their turn in between and it is never in
 * memory as a whole. Objects are frozen: what happens meanwhile does not show. What cannot be shown at all is refused
 * before the first piece.
 */
export function listPieces(answer: ListAnswer, shaping: Shaping): Iterable<string> {
  const pieces = makePieces(answer, shaping);
  const first = pieces.next();
  return first.done === true ? [] : begun(first.value, pieces);
}

function* begun(first: string, rest: Iterable<string>): Generator<string, void> {
  yield first;
  yield* rest;
}

function* makePieces({ list, ...answer }: ListAnswer, shaping: Shaping): Generator<string, void> {
  const nowMs = shaping.nowMs();
  const field = shaping.shape === 'table' ? 'rows' : 'items';
  for (let at = 0; at < list.items.length; at += itemsOfPiece) {
    const items = list.items.slice(at, at + itemsOfPiece);
    const part = shapedAnswer({ ...answer, list: { ...list, items } }, { ...shaping, nowMs: () => nowMs });
    const { [field]: entries, ...head } = part;
    const text = JSON.stringify(entries).slice(1, -1);
    yield at === 0 ? `${JSON.stringify(head).slice(0, -1)},"${field}":[${text}` : `,${text}`;
  }
  yield ']}\n';
}
