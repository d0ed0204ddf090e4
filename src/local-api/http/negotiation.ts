import type { IncomingHttpHeaders } from 'node:http';
import type { JsonObject } from '../../api/index.ts';
import { type ResourceEntry, StatusError } from '../api/api-types.ts';
import { type ApiAnswer, type WatchLine, wireList } from '../api/responses.ts';
import { badRequest } from '../api/status-errors.ts';
import type { StoredObject } from '../api/stored-object.ts';
import type { TableWish } from '../output/index.ts';
import { asPartial, asTable } from '../output/index.ts';
import { notAcceptable } from './http-errors.ts';
import { acceptedTypes, type MediaType } from './media-types.ts';

/** How a client wants its answer. */
export interface OutputForm {
  readonly format: 'json' | 'yaml';
  /** What becomes of objects; a Status stays what it is. */
  readonly shape: 'whole' | 'table' | 'partial' | 'partial-list';
  readonly layout: 'compact' | 'indented';
}

export const plainJson: OutputForm = { format: 'json', shape: 'whole', layout: 'compact' };

const servedTypes = ['application/json', 'application/yaml'];

type FormOfType = Pick<OutputForm, 'format' | 'shape'>;

/** Throws a refusal if nothing the client would take can be had. `cannot` is what there is no way to show. */
export function negotiate(
  headers: IncomingHttpHeaders,
  query: URLSearchParams,
  cannot?: OutputForm['shape'],
): OutputForm {
  const layout = isForPeople(headers, query) ? 'indented' : 'compact';
  const accept = headers.accept?.trim() ?? '';
  if (accept === '') return { ...plainJson, layout };
  for (const type of acceptedTypes(accept)) {
    const form = formOf(type);
    if (form !== undefined && form.shape !== cannot) return { ...form, layout };
  }
  throw notAcceptable(servedTypes);
}

const formats: ReadonlyMap<string, OutputForm['format']> = new Map([
  ['*/*', 'json'],
  ['application/*', 'json'],
  ['application/json', 'json'],
  ['application/yaml', 'yaml'],
]);

/** Undefined when it cannot be had, so that the client's next choice is looked at. */
function formOf({ essence, parameters }: MediaType): FormOfType | undefined {
  const format = formats.get(essence);
  const stream = parameters.get('stream') ?? 'watch';
  if (format === undefined || stream !== 'watch') return undefined;
  const shape = shapeOf(parameters);
  return shape === undefined ? undefined : { format, shape };
}

const shapes: ReadonlyMap<string, OutputForm['shape']> = new Map([
  ['Table', 'table'],
  ['PartialObjectMetadata', 'partial'],
  ['PartialObjectMetadataList', 'partial-list'],
]);

function shapeOf(parameters: ReadonlyMap<string, string>): OutputForm['shape'] | undefined {
  const wanted = ['as', 'g', 'v'].map((name) => parameters.get(name));
  if (wanted.every((value) => value === undefined)) return 'whole';
  const [kind = '', group, version] = wanted;
  return group === 'meta.k8s.io' && version === 'v1' ? shapes.get(kind) : undefined;
}

/** People look at answers with tools of their own, which do not indent. */
function isForPeople(headers: IncomingHttpHeaders, query: URLSearchParams): boolean {
  const pretty = query.get('pretty');
  if (pretty !== null && pretty !== '') return ['1', 't', 'true'].includes(pretty.toLowerCase());
  return /^(?:curl|Wget|Mozilla\/5\.0)/.test(headers['user-agent'] ?? '');
}

/** What of each object comes with its row in a Table. */
export function includedObject(query: URLSearchParams): TableWish['includeObject'] {
  const wanted = query.get('includeObject') ?? '';
  if (wanted === '') return 'Metadata';
  if (wanted === 'None' || wanted === 'Metadata' || wanted === 'Object') return wanted;
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(wanted)}: must be 'Metadata', 'Object', 'None', or empty`,
  );
}

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
