/** A media type with its parameters, such as `application/json;as=Table;v=v1;g=meta.k8s.io`. */
export interface MediaType {
  /** Type and subtype in lower case, such as `application/json`. */
  readonly essence: string;
  readonly parameters: ReadonlyMap<string, string>;
}

interface Clause extends MediaType {
  readonly quality: number;
}

/** The maximum number of types read from an Accept header. */
const maxClauses = 64;

/** The media types of an Accept header by quality; types of equal quality in header order. */
export function acceptedTypes(header: string): readonly MediaType[] {
  const clauses = header
    .split(',', maxClauses)
    .map(readClause)
    .filter((clause) => clause !== undefined && clause.quality > 0) as Clause[];
  return clauses.toSorted((a, b) => b.quality - a.quality);
}

/** Parses a media type; undefined if it is malformed. */
export function readMediaType(text: string): MediaType | undefined {
  const [first = '', ...rest] = text.split(';');
  const essence = first.trim().toLowerCase();
  if (!/^[^\s/]+\/[^\s/]+$/.test(essence)) return undefined;
  const parameters = rest.map((part) => part.trim().split('=')).filter(([name]) => name !== '');
  return {
    essence,
    parameters: new Map(
      parameters.map(([name = '', ...value]) => [name.trim().toLowerCase(), unquoted(value.join('='))]),
    ),
  };
}

function readClause(text: string): Clause | undefined {
  const type = readMediaType(text);
  if (type === undefined) return undefined;
  const written = type.parameters.get('q');
  const quality = written === undefined ? 1 : Number(written);
  const parameters = new Map([...type.parameters].filter(([name]) => name !== 'q'));
  return { ...type, parameters, quality: Number.isFinite(quality) ? Math.min(Math.max(quality, 0), 1) : 0 };
}

function unquoted(value: string): string {
  const text = value.trim();
  return text.length > 1 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text;
}
