import type { JsonObject } from '../../api/index.ts';
import { type ApiAnswer, type WatchLine, wireList } from '../core/answers.ts';
import { type ResourceEntry, StatusError } from '../core/contract.ts';
import type { StoredObject } from '../core/stored-object.ts';
import { asPartial, asTable, type TableWish } from '../output/index.ts';
import type { OutputForm } from './negotiate.ts';

/** All that turns an answer into what its client asked for. */
export interface Shaping {
  readonly entry: ResourceEntry;
  readonly shape: OutputForm['shape'];
  readonly includeObject: TableWish['includeObject'];
  readonly nowMs: () => number;
}

export function shapedAnswer(answer: ApiAnswer, shaping: Shaping): JsonObject {
  if (answer.kind === 'status') return answer.status;
  const body = answer.kind === 'list' ? (answer.list as unknown as JsonObject) : answer.object;
  // A Status says how a call went, whatever its client hoped to see.
  if (body['kind'] === 'Status') return body;
  if (shaping.shape === 'whole') return answer.kind === 'list' ? wireList(answer.list) : body;
  if (shaping.shape === 'table') return tableOf(answer, shaping);
  if ((shaping.shape === 'partial-list') !== (answer.kind === 'list')) throw wrongPartial(answer);
  return asPartial(body);
}

function tableOf(answer: Exclude<ApiAnswer, { kind: 'status' }>, shaping: Shaping): JsonObject {
  if (answer.kind === 'list') return makeTable(shaping, answer.list.items, answer.list.metadata, 'with');
  return makeTable(shaping, [answer.object], versionOf(answer.object), 'with');
}

function makeTable(
  { entry, includeObject, nowMs }: Shaping,
  objects: readonly JsonObject[],
  metadata: JsonObject,
  columns: TableWish['columns'],
): JsonObject {
  const wish = { metadata, includeObject, nowMs: nowMs(), columns };
  return asTable(entry, objects as readonly StoredObject[], wish);
}

function versionOf({ metadata }: JsonObject): JsonObject {
  const version = (metadata as JsonObject | undefined)?.['resourceVersion'];
  return version === undefined ? {} : { resourceVersion: version };
}

function wrongPartial({ kind }: ApiAnswer): StatusError {
  const asked = kind === 'list' ? 'PartialObjectMetadata' : 'PartialObjectMetadataList';
  const found = kind === 'list' ? 'a list' : 'not a list';
  const message = `you requested ${asked}, but the requested object is ${found}`;
  return new StatusError({ code: 406, reason: 'NotAcceptable', message });
}

/** The object of a watch's line as its client asked for it. In a watch of tables the first one has the columns. */
export function shapedLine(
  { type, object }: WatchLine,
  shaping: Shaping,
  columns: TableWish['columns'],
): JsonObject {
  if (shaping.shape === 'whole' || type === 'ERROR') return object;
  if (shaping.shape !== 'table') return asPartial(object);
  return makeTable(shaping, [object], versionOf(object), columns);
}
