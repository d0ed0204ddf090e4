import type { JsonObject } from '../../api/index.ts';
import { isPlainYamlText } from '../../lib/index.ts';
import type { ApiResponse } from '../api/responses.ts';
import type { NegotiatedOutput } from './negotiation.ts';
import { type OutputContext, renderResponse } from './negotiation.ts';
import type { Reply } from './reply.ts';

type ListAnswer = Extract<ApiResponse, { kind: 'list' }>;

/**
 * The number of list items up to which a list is encoded in one step, which blocks the event loop.
 */
const maxItemsInFirstChunk = 20;
const maxItemsInChunk = 100;
/**
 * The size of a chunk above which the next chunk has fewer objects, because objects may be large.
 */
const chunkCharacters = 512 * 1024;

export function isLongList(response: ApiResponse): response is ListAnswer {
  return response.kind === 'list' && response.list.items.length > maxItemsInFirstChunk;
}

/**
 * The JSON of a long list, generated while it is sent, so that it neither blocks the event loop nor
 * is completely in memory. Stored objects are frozen, so concurrent changes have no effect. An
 * unsupported representation is rejected before the first chunk.
 */
export function listChunks(
  response: ListAnswer,
  shaping: OutputContext,
  layout: NegotiatedOutput['layout'] = 'compact',
): Iterable<string> {
  const pieces = generateChunks(response, shaping, layout);
  const first = pieces.next();
  return first.done === true ? [] : withFirst(first.value, pieces);
}

function* withFirst(first: string, rest: Iterable<string>): Generator<string, void> {
  yield first;
  yield* rest;
}

function* generateChunks(
  { list, ...response }: ListAnswer,
  shaping: OutputContext,
  layout: NegotiatedOutput['layout'],
): Generator<string, void> {
  const nowMs = shaping.nowMs();
  const field = shaping.shape === 'table' ? 'rows' : 'items';
  let count = maxItemsInFirstChunk;
  for (let at = 0; at < list.items.length; ) {
    const items = list.items.slice(at, at + count);
    const part = renderResponse(
      { ...response, list: { ...list, items } },
      { ...shaping, nowMs: () => nowMs },
    );
    const { [field]: entries, ...head } = part;
    const text = layout === 'indented' ? indentedItems(entries) : JSON.stringify(entries).slice(1, -1);
    yield at === 0 ? `${headOf(head, layout)}${text}` : `,${text}`;
    at += items.length;
    count = text.length > chunkCharacters ? Math.max(1, count >> 1) : Math.min(maxItemsInChunk, count * 2);
  }
  yield layout === 'indented' ? '\n  ]\n}\n' : ']}\n';

  function headOf(head: JsonObject, form: NegotiatedOutput['layout']): string {
    const text =
      form === 'indented' ? JSON.stringify(head, null, 2).slice(0, -2) : JSON.stringify(head).slice(0, -1);
    return form === 'indented' ? `${text},\n  "${field}": [` : `${text},"${field}":[`;
  }
}

/** The list items as JSON, indented by two levels. */
function indentedItems(entries: unknown): string {
  return JSON.stringify(entries, null, 2).slice(1, -2).replaceAll('\n', '\n  ');
}

/** The approximate size of a YAML chunk in characters. */
const yamlChunkCharacters = 64 * 1024;

/** A response whose YAML is generated while it is sent, because a long list takes seconds. */
export function yamlReply(status: number, value: unknown): Reply {
  return { status, headers: { 'Content-Type': 'application/yaml' }, body: yamlChunks(value) };
}

/** Generates the YAML of a value; fields that JSON omits are omitted. */
export function* yamlChunks(value: unknown): Generator<string, void> {
  let piece = '';
  for (const line of linesOf(value, '', '')) {
    piece += line;
    if (piece.length < yamlChunkCharacters) continue;
    yield piece;
    piece = '';
  }
  yield piece;
}

/**
 * Generates the lines of a value in YAML; `first` is the text before the value on its first line,
 * `indent` that on the following lines.
 */
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

/** Plain scalars that a YAML parser could read as a number. */
const numberLike = /^[eE\d_.-]+$/;

/**
 * A scalar as YAML: strings that are not plain words are written as JSON strings, which are valid
 * YAML.
 */
function scalar(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value) ?? 'null';
  const isWord =
    /^[A-Za-z_/][\w./-]{0,200}$/.test(value) && !numberLike.test(value) && isPlainYamlText(value);
  return isWord ? value : JSON.stringify(value);
}
