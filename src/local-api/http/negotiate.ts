import type { IncomingHttpHeaders } from 'node:http';
import { badRequest } from '../core/refusals.ts';
import type { TableWish } from '../output/index.ts';
import { acceptedTypes, type MediaType } from './media-types.ts';
import { notAcceptable } from './refusals.ts';

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
