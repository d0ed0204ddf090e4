import type { IncomingHttpHeaders } from 'node:http';
import type { JsonObject } from '../../api/index.ts';
import { type ResourceEntry, StatusError } from '../api/api-types.ts';
import { type ApiResponse, listBody, type ServedWatchEvent } from '../api/responses.ts';
import { badRequest } from '../api/status-errors.ts';
import type { StoredObject } from '../api/stored-object.ts';
import type { TableOptions } from '../output/index.ts';
import { asPartial, asTable } from '../output/index.ts';
import { notAcceptable } from './http-errors.ts';
import { acceptedTypes, type MediaType } from './media-types.ts';

/** The negotiated format of a response. */
export interface NegotiatedOutput {
  readonly format: 'json' | 'yaml';
  /** The requested representation of objects; a Status is never converted. */
  readonly shape: 'whole' | 'table' | 'partial' | 'partial-list';
  readonly layout: 'compact' | 'indented';
}

const plainJson: NegotiatedOutput = { format: 'json', shape: 'whole', layout: 'compact' };

const servedTypes = ['application/json', 'application/yaml'];

type FormatAndShape = Pick<NegotiatedOutput, 'format' | 'shape'>;

/**
 * Selects the response format from the Accept header. Throws a StatusError if no accepted type is
 * supported. `cannot` is a representation that the resource does not support.
 */
export function negotiate(
  headers: IncomingHttpHeaders,
  query: URLSearchParams,
  cannot?: NegotiatedOutput['shape'],
): NegotiatedOutput {
  const layout = wantsIndentation(headers, query) ? 'indented' : 'compact';
  const accept = headers.accept?.trim() ?? '';
  if (accept === '') return { ...plainJson, layout };
  for (const type of acceptedTypes(accept)) {
    const form = outputOf(type);
    if (form !== undefined && form.shape !== cannot) return { ...form, layout };
  }
  throw notAcceptable(servedTypes);
}

const formats: ReadonlyMap<string, NegotiatedOutput['format']> = new Map([
  ['*/*', 'json'],
  ['application/*', 'json'],
  ['application/json', 'json'],
  ['application/yaml', 'yaml'],
]);

/**
 * The format for one accepted type; undefined for an unsupported type: then the next one is tried.
 */
function outputOf({ essence, parameters }: MediaType): FormatAndShape | undefined {
  const format = formats.get(essence);
  const stream = parameters.get('stream') ?? 'watch';
  if (format === undefined || stream !== 'watch') return undefined;
  const shape = shapeOf(parameters);
  return shape === undefined ? undefined : { format, shape };
}

const shapes: ReadonlyMap<string, NegotiatedOutput['shape']> = new Map([
  ['Table', 'table'],
  ['PartialObjectMetadata', 'partial'],
  ['PartialObjectMetadataList', 'partial-list'],
]);

function shapeOf(parameters: ReadonlyMap<string, string>): NegotiatedOutput['shape'] | undefined {
  const requested = ['as', 'g', 'v'].map((name) => parameters.get(name));
  if (requested.every((value) => value === undefined)) return 'whole';
  const [kind = '', group, version] = requested;
  return group === 'meta.k8s.io' && version === 'v1' ? shapes.get(kind) : undefined;
}

/**
 * Browsers, curl and Wget show the response to users without indenting it, so they get indented
 * output.
 */
function wantsIndentation(headers: IncomingHttpHeaders, query: URLSearchParams): boolean {
  const pretty = query.get('pretty');
  if (pretty !== null && pretty !== '') return ['1', 't', 'true'].includes(pretty.toLowerCase());
  return /^(?:curl|Wget|Mozilla\/5\.0)/.test(headers['user-agent'] ?? '');
}

/** What each Table row includes of its object. */
export function includedObject(query: URLSearchParams): TableOptions['includeObject'] {
  const requested = query.get('includeObject') ?? '';
  if (requested === '') return 'Metadata';
  if (requested === 'None' || requested === 'Metadata' || requested === 'Object') return requested;
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(requested)}: must be 'Metadata', 'Object', 'None', or empty`,
  );
}

/** The parameters for rendering a response. */
export interface OutputContext {
  readonly entry: ResourceEntry;
  readonly shape: NegotiatedOutput['shape'];
  readonly includeObject: TableOptions['includeObject'];
  readonly nowMs: () => number;
}

export function renderResponse(response: ApiResponse, shaping: OutputContext): JsonObject {
  if (response.kind === 'status') return response.status;
  const body = response.kind === 'list' ? (response.list as unknown as JsonObject) : response.object;
  // A Status is never converted to another representation.
  if (body['kind'] === 'Status') return body;
  if (shaping.shape === 'whole') return response.kind === 'list' ? listBody(response.list) : body;
  if (shaping.shape === 'table') return tableOf(response, shaping);
  if ((shaping.shape === 'partial-list') !== (response.kind === 'list')) throw partialMismatch(response);
  return asPartial(body);
}

function tableOf(response: Exclude<ApiResponse, { kind: 'status' }>, shaping: OutputContext): JsonObject {
  if (response.kind === 'list')
    return createTable(shaping, response.list.items, response.list.metadata, 'with');
  return createTable(shaping, [response.object], versionOf(response.object), 'with');
}

function createTable(
  { entry, includeObject, nowMs }: OutputContext,
  objects: readonly JsonObject[],
  metadata: JsonObject,
  columns: TableOptions['columns'],
): JsonObject {
  const options = { metadata, includeObject, nowMs: nowMs(), columns };
  return asTable(entry, objects as readonly StoredObject[], options);
}

function versionOf({ metadata }: JsonObject): JsonObject {
  const version = (metadata as JsonObject | undefined)?.['resourceVersion'];
  return version === undefined ? {} : { resourceVersion: version };
}

function partialMismatch({ kind }: ApiResponse): StatusError {
  const requestedKind = kind === 'list' ? 'PartialObjectMetadata' : 'PartialObjectMetadataList';
  const found = kind === 'list' ? 'a list' : 'not a list';
  const message = `you requested ${requestedKind}, but the requested object is ${found}`;
  return new StatusError({ code: 406, reason: 'NotAcceptable', message });
}

/**
 * Renders the object of a watch event. In a watch of Tables only the first event has column
 * definitions.
 */
export function renderWatchEvent(
  { type, object }: ServedWatchEvent,
  shaping: OutputContext,
  columns: TableOptions['columns'],
): JsonObject {
  if (shaping.shape === 'whole' || type === 'ERROR') return object;
  if (shaping.shape !== 'table') return asPartial(object);
  return createTable(shaping, [object], versionOf(object), columns);
}
